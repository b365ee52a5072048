"""A tile for each region, from a small table by shape."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields

from meganeura.errors import OptionError
from meganeura.fuse.region import Region
from meganeura.ir.graph import Node
from meganeura.target import Target
from meganeura.tile.tile import MapTile, MatmulTile, ReduceTile, Tile
from meganeura.trace import note, stage

MATMUL_TILES = (
    MatmulTile(128, 128, 16, 8, 8),
    MatmulTile(64, 128, 16, 8, 8),
    MatmulTile(64, 64, 16, 8, 4),
    MatmulTile(32, 64, 16, 4, 4),
    MatmulTile(32, 32, 16, 4, 4),
    MatmulTile(16, 16, 16, 4, 4),
)
"""From the most reuse to the most workgroups."""

TEAM_TILES = (MatmulTile(16, 16, 64, 4, 4, 16), MatmulTile(16, 16, 32, 4, 4, 8))
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
    for name in forced:
        if name not in names:
            known = ", ".join(sorted(names))
            raise OptionError(
                f"no tensor {name!r} to tile", expected=f"one of: {known}", got=repr(name)
            )
    wanted = {names[name]: (name, sizes) for name, sizes in forced.items()}
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


def _matmul(region: Region, target: Target) -> MatmulTile:
    """The tile with the most reuse whose grid still fills the machine, else the one with the most
    workgroups.
    """
    batch, m, n = region.space.shape
    legal = [t for t in MATMUL_TILES if broken_rule(t, target) is None]
    for candidate in legal:
        grid = batch * math.ceil(m / candidate.bm) * math.ceil(n / candidate.bn)
        waste = (
            math.ceil(m / candidate.bm)
            * candidate.bm
            * math.ceil(n / candidate.bn)
            * candidate.bn
            / (m * n)
        )
        if grid >= target.units and waste <= 1.5:
            return candidate
    terms = region.anchors[0].inputs[0].shape[-1]
    teams = [t for t in TEAM_TILES if broken_rule(t, target) is None and terms >= t.bk]
    if teams and not target.software:
        return teams[0]
    return _smallest(legal, m, n)


def _smallest(legal: list[MatmulTile], m: int, n: int) -> MatmulTile:
    """For a small product: 32 x 32, or 16 x 16 when that wastes less."""

    def padded(t: MatmulTile) -> int:
        return math.ceil(m / t.bm) * t.bm * math.ceil(n / t.bn) * t.bn

    small = legal[-2:]
    return min(small, key=lambda t: (padded(t), -t.bm))


def _reduce(region: Region, target: Target) -> ReduceTile:
    """Rows side by side when results are contiguous in memory, terms side by side otherwise."""
    space = region.space
    fields = sum(2 if a.op.name == "argmax" else 1 for a in region.anchors)
    threads = _power(min(256, target.invocations, target.workgroup_memory // (4 * fields)))
    contiguous = (len(space.operand) - 1) in space.axes
    lanes = 4 if contiguous and space.length % 4 == 0 and space.operand[-1] % 4 == 0 else 1
    terms = math.ceil(space.length / lanes)
    if contiguous:
        parts = min(threads, _power(max(terms, 1)) if terms > 16 else 1)
        rows = max(1, min(64 // parts, threads)) if parts < 64 else 1
        return ReduceTile(rows, parts, lanes, fields)
    rows = min(32, _power(max(space.rows, 1)) * (1 if space.rows & (space.rows - 1) == 0 else 2))
    parts = min(threads // rows, _power(max(terms, 1)))
    return ReduceTile(rows, parts, lanes, fields)
