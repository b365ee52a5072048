"""Merging launches: small maps of one wave become the arms of one launch.

A launch costs the host and the device a few microseconds, whatever it does. Maps that need nothing
of each other and leave most of the machine idle share one: the workgroup's number says which arm it
works on (Rammer, OSDI 2020, merges operators so).
"""

from __future__ import annotations

from dataclasses import dataclass

from meganeura.fuse.fuse import buffers
from meganeura.fuse.region import Region
from meganeura.ir.graph import Node
from meganeura.schedule.waves import waves_of
from meganeura.target import Target
from meganeura.tile.tile import MapTile, Tile
from meganeura.trace import note, stage

MOST_ARMS = 16
ROOM = 8
"""Workgroups a unit up to which launches are merged: more fill the machine by themselves."""


@dataclass(frozen=True)
class Alone:
    """A region as a launch of its own."""

    arms: tuple[Region, ...]


@stage("merge")
def merge(
    regions: tuple[Region, ...],
    tiles: tuple[Tile, ...],
    updates: tuple[tuple[Node, Node], ...],
    target: Target,
    enabled: bool = True,
) -> tuple[tuple[int, ...], ...]:
    """Regions with tiles -> the regions of each launch, by their places in the tuple."""
    wave = waves_of(tuple(Alone((r,)) for r in regions), updates)
    launches: list[list[int]] = []
    for i, tile in enumerate(tiles):
        small = (
            enabled
            and isinstance(tile, MapTile)
            and _groups(regions[i], tile) <= ROOM * target.units
        )
        found = next(
            (la for la in launches if small and _fits(la, i, regions, tiles, wave, target)), None
        )
        if found is None:
            launches.append([i])
        else:
            found.append(i)
    note("merged", sum(len(la) for la in launches if len(la) > 1))
    return tuple(tuple(la) for la in launches)


def _groups(region: Region, tile: MapTile) -> int:
    return tile.groups(region.space.rows)


def _fits(
    launch: list[int],
    i: int,
    regions: tuple[Region, ...],
    tiles: tuple[Tile, ...],
    wave: dict[int, int],
    target: Target,
) -> bool:
    """Whether a small map may become another arm of a launch of small maps."""
    first = tiles[launch[0]]
    if not isinstance(first, MapTile) or first.workgroup != tiles[i].threads:
        return False
    if wave[launch[0]] != wave[i] or len(launch) >= MOST_ARMS:
        return False
    members = [*launch, i]
    groups = sum(_groups(regions[j], t) for j in members if isinstance(t := tiles[j], MapTile))
    bound = sum(buffers(regions[j]) for j in members)
    return groups <= ROOM * target.units and bound <= target.storage_buffers
