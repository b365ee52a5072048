"""A tile for each region, from a small table by shape."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields

from meganeura.errors import OptionError
from meganeura.fuse.access import fastest
from meganeura.fuse.region import Region
from meganeura.ir import index as ix
from meganeura.ir.graph import Node
from meganeura.target import Target
from meganeura.tile.tile import MapTile, MatmulTile, ReduceTile, Tile
from meganeura.trace import note, stage

MATMUL_TILES: Mapping[MatmulTile, tuple[float, float]] = {
    MatmulTile(256, 128, 16, 16, 8): (1.0, 1.0),
    MatmulTile(128, 128, 16, 8, 8): (0.72, 1.0),
    MatmulTile(128, 64, 16, 8, 4): (0.84, 0.84),
    MatmulTile(64, 64, 16, 8, 4): (0.58, 0.84),
    MatmulTile(32, 64, 16, 4, 4): (0.56, 0.7),
    MatmulTile(32, 32, 16, 4, 4): (0.4, 0.5),
    MatmulTile(16, 16, 16, 4, 4): (0.2, 0.25),
}
"""Tiles with the share of the best rate that each reaches with one tile a unit, and with several,
which hide each other's waiting: read off products of 512 to 4096 in float32 on an NVIDIA H200
(docs/benchmarks)."""

TEAM_TILES = (MatmulTile(16, 16, 32, 4, 4, 8), MatmulTile(16, 16, 16, 4, 4, 4))
"""For products whose tiles are too few to fill the machine: teams share the terms of a tile."""


@stage("tile")
def tile(
    regions: tuple[Region, ...],
    target: Target,
    forced: Mapping[str, tuple[int, ...]],
    names: Mapping[str, Node],
) -> tuple[Tile, ...]:
    """Regions -> a tile for each; `forced` gives that of the region that computes a named tensor,
    `names` the tensors.
    """
    wanted = {names[name]: (name, sizes) for name, sizes in forced.items() if name in names}
    tiles = tuple(_forced(r, target, wanted) or choose(r, target) for r in regions)
    note("tiles", [t.describe() for t in tiles])
    return tiles


def _forced(
    region: Region, target: Target, wanted: Mapping[Node, tuple[str, tuple[int, ...]]]
) -> Tile | None:
    found = next((wanted[n] for n in region.nodes if n in wanted), None)
    if found is None:
        return None
    name, sizes = found
    made = _make(region, name, sizes)
    problem = broken_rule(made, target)
    if problem is not None:
        raise OptionError(
            f"the tile {sizes} for {name!r} is illegal",
            expected=problem,
            got=made.describe(),
            hint=f"{choose(region, target).describe()} is the default",
        )
    return made


def _make(region: Region, name: str, sizes: tuple[int, ...]) -> Tile:
    kinds = {"matmul": (MatmulTile, (5, 6)), "reduce": (ReduceTile, (3,)), "map": (MapTile, (2,))}
    kind, counts = kinds[region.kind]
    if len(sizes) not in counts or min(sizes) < 1:
        number = " or ".join(map(str, counts))
        raise OptionError(
            f"a tile of a {region.kind} kernel has {number} sizes of at least 1",
            expected=", ".join(f.name for f in fields(kind)[: counts[-1]]),
            got=str(sizes),
            hint=f"options.tile = {{{name!r}: (...)}}",
        )
    made: Tile = kind(*sizes)
    return made


def broken_rule(tile: Tile, target: Target) -> str | None:
    """The limit or rule that a tile breaks, in words; None when it is legal."""
    if tile.threads > target.invocations:
        return f"at most {target.invocations} invocations, not {tile.threads}"
    if tile.workgroup_bytes > target.workgroup_memory:
        used = tile.workgroup_bytes
        return f"at most {target.workgroup_memory} bytes of workgroup memory, not {used}"
    if isinstance(tile, MatmulTile):
        return _broken_matmul(tile)
    if isinstance(tile, ReduceTile) and tile.parts & (tile.parts - 1):
        return f"parts is a power of two, not {tile.parts}"
    if not isinstance(tile, MatmulTile) and tile.lanes not in (1, 4):
        return f"lanes is 1 or 4, not {tile.lanes}"
    return None


def _broken_matmul(tile: MatmulTile) -> str | None:
    if tile.tm % 4 or tile.tn % 4 or tile.bm % tile.tm or tile.bn % tile.tn:
        return "tm and tn are multiples of 4 that divide bm and bn"
    a, b = tile.bm // 4 * tile.bk, tile.bn // 4 * tile.bk
    if a % tile.threads or b % tile.threads:
        return f"{tile.threads} invocations divide the {a} and {b} vectors of a slice"
    return None


def choose(region: Region, target: Target) -> Tile:
    """The default tile of a region."""
    if region.kind == "matmul":
        return _matmul(region, target)
    if region.kind == "reduce":
        return _reduce(region, target)
    elements = region.space.rows
    return MapTile(_power(min(256, target.invocations)), 4 if elements % 4 == 0 else 1)


def _power(limit: int) -> int:
    return 1 << (limit.bit_length() - 1)


UNIT_FLOPS = 0.3e12
LAUNCH = 2.5e-6
BYTES = 4e12
"""The machine of `MATMUL_TILES`: a unit's rate, a launch behind a barrier, memory."""


def matmul_seconds(tile: MatmulTile, batch: int, m: int, n: int, k: int, units: int) -> float:
    """How long a product takes with a tile: rounds of tiles over the units, each as long as its
    arithmetic at the tile's rate.
    """
    tiles = batch * math.ceil(m / tile.bm) * math.ceil(n / tile.bn)
    rounds = math.ceil(tiles / units)
    rate = UNIT_FLOPS * MATMUL_TILES[tile][rounds > 1]
    return rounds * 2.0 * tile.bm * tile.bn * k / rate


def split_parts(count: int, m: int, n: int, k: int, target: Target) -> int:
    """In how many parts the terms of a product are summed, so that more of the machine works: a
    second launch adds the parts up.
    """
    if target.software:
        return 1
    legal = [t for t in MATMUL_TILES if broken_rule(t, target) is None]

    def seconds(parts: int) -> float:
        product = min(
            matmul_seconds(t, count * parts, m, n, k // parts, target.units) for t in legal
        )
        moved = 8.0 * count * parts * m * n
        return product + (LAUNCH + moved / BYTES if parts > 1 else 0.0)

    choices = [1]
    while k % (choices[-1] * 2) == 0 and k // (choices[-1] * 2) >= 64:
        choices.append(choices[-1] * 2)
    return min(choices, key=seconds)


def _matmul(region: Region, target: Target) -> MatmulTile:
    """The tile of least cost; teams for a product that leaves most of the machine idle."""
    batch, m, n = region.space.shape
    legal = [t for t in MATMUL_TILES if broken_rule(t, target) is None]
    terms = region.anchors[0].inputs[0].shape[-1]
    teams = [t for t in TEAM_TILES if broken_rule(t, target) is None and terms >= t.bk]
    small = batch * math.ceil(m / 32) * math.ceil(n / 32) <= target.units
    if teams and small and not target.software:
        return teams[0]
    return min(legal, key=lambda t: matmul_seconds(t, batch, m, n, terms, target.units))


def _reduce(region: Region, target: Target) -> ReduceTile:
    """Terms side by side where they are neighbours in memory, results side by side otherwise."""
    space = region.space
    fields = sum(2 if a.op.name == "argmax" else 1 for a in region.anchors)
    threads = _power(min(256, target.invocations, target.workgroup_memory // (4 * fields)))
    along_terms = _terms_are_neighbours(region)
    lanes = 4 if along_terms and space.length % 4 == 0 else 1
    terms = math.ceil(space.length / lanes)
    if along_terms:
        return _along_terms(space.rows, terms, threads, lanes, fields, target)
    return _across_terms(space.rows, terms, threads, fields, target)


def _along_terms(
    rows: int, terms: int, threads: int, lanes: int, fields: int, target: Target
) -> ReduceTile:
    """A few terms an invocation, from 16 invocations a row up; all that there are for few rows."""
    if terms <= 16:
        return ReduceTile(min(64, threads), 1, lanes, fields)
    each = 1 if rows < target.units else 4
    parts = min(threads, max(16, _power(terms // each)))
    return ReduceTile(1 if parts >= 32 else min(4, threads // parts), parts, lanes, fields)


FULL = 2048
"""Invocations a unit that hide the waiting for memory."""


def _across_terms(rows: int, terms: int, threads: int, fields: int, target: Target) -> ReduceTile:
    """Results side by side; their terms are shared only if the results alone do not fill the
    machine.
    """
    wanted = _power(max(target.units * FULL // max(rows, 1), 1))
    parts = min(wanted, _power(max(terms, 1)), threads // min(32, threads))
    wide = 1 << max(rows - 1, 0).bit_length()
    return ReduceTile(min(threads // parts, wide), parts, 1, fields)


def _terms_are_neighbours(region: Region) -> bool:
    """Whether the next term lies beside this one, in the largest tensor that is read."""
    space = region.space
    row = ix.unflatten(ix.var("row", space.rows), space.shape)
    at = space.element(row, ix.var("k", space.length))
    names = [fastest(region, a.inputs[0], at, ("k", "row")) for a in region.anchors]
    return next((n for n in names if n is not None), "k") == "k"
