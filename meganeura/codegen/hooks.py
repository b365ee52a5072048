"""The hooks of each skeleton, generated from a region and its tile."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from meganeura.codegen.expr import Buffers, Emitter, Lanes, Line, number, vector
from meganeura.fuse.access import fastest
from meganeura.fuse.region import Region
from meganeura.ir import index as ix
from meganeura.ir.graph import Node
from meganeura.ir.index import Index
from meganeura.ir.reference import lowest
from meganeura.tile.tile import MapTile, MatmulTile, ReduceTile

MOST_GROUPS = 65535
"""Workgroups on each axis of a grid that every adapter grants."""

FOLD = 32768
"""Workgroups a row of a folded grid has."""


@dataclass(frozen=True)
class Hooks:
    """What the linker adds to a skeleton: constants, functions, counts for `@unroll`, the grid."""

    skeleton: str
    constants: dict[str, int | bool]
    functions: list[Line]
    unroll: dict[str, int]
    grid: tuple[int, int, int]


def folded(groups: int) -> tuple[int, int, int]:
    """A one-dimensional grid within the limit of 65,535 a dimension."""
    return (groups, 1, 1) if groups <= FOLD else (FOLD, math.ceil(groups / FOLD), 1)


def outside(region: Region) -> frozenset[Node]:
    """The tensors that the region reads from memory."""
    return frozenset(region.inputs)


def lanes_of(flat: Index, lanes: int) -> tuple[Index, ...]:
    """The positions of the lanes of an invocation: four neighbours, or one."""
    if lanes == 1:
        return (flat,)
    return tuple(ix.add(ix.scale(flat, 4), ix.const(j)) for j in range(4))


def map_hooks(region: Region, tile: MapTile, buffers: Buffers, suffix: str = "") -> Hooks:
    """`element(v)` computes and stores all roots at one place."""
    count = region.space.rows // tile.lanes
    emit = Emitter(buffers, outside(region), {})
    starts = [ix.unflatten(p, region.space.shape) for p in lanes_of(ix.var("v", count), tile.lanes)]
    _store_roots(region, emit, [region.bases(s) for s in starts], region.roots)
    functions = [Line(f"fn element{suffix}(v: u32) {{"), *emit.lines, Line("}")]
    grid = folded(tile.groups(region.space.rows))
    return Hooks(
        "map", {"WORKGROUP": tile.workgroup, "COUNT": count, "FOLD": FOLD}, functions, {}, grid
    )


def arm_hooks(arms: list[tuple[Region, MapTile]], buffers: Buffers) -> Hooks:
    """`element0(v)`, `element1(v)` ... and `arm(block, lane)`, which finds a workgroup's arm."""
    functions: list[Line] = []
    chooser = [Line("fn arm(block: u32, lane: u32) {")]
    start = 0
    for i, (region, tile) in enumerate(arms):
        functions += map_hooks(region, tile, buffers, str(i)).functions
        end, count = start + tile.groups(region.space.rows), region.space.rows // tile.lanes
        inside = f"(block - {start}u) * WORKGROUP + lane" if start else "block * WORKGROUP + lane"
        chooser += [
            Line(f"  if (block < {end}u) {{"),
            Line(f"    let v = {inside};"),
            Line(f"    if (v < {count}u) {{ element{i}(v); }}"),
            Line("    return;"),
            Line("  }"),
        ]
        start = end
    functions += [*chooser, Line("}")]
    sizes: dict[str, int | bool] = {"WORKGROUP": arms[0][1].workgroup, "FOLD": FOLD}
    return Hooks("arms", sizes, functions, {}, folded(start))


def _store_roots(region: Region, emit: Emitter, bases: list, roots: tuple[Node, ...]) -> None:  # type: ignore[type-arg]
    """All values first, then all stores: an update may read what another root overwrites."""
    places = [region.places(b) for b in bases]
    at: dict[Node, Lanes] = {n: tuple(p[n] for p in places) for n in roots}
    values = [(n, emit.value(n, at[n])) for n in roots]
    for node, value in values:
        emit.store(node, at[node], value)


def reduce_hooks(region: Region, tile: ReduceTile, buffers: Buffers) -> Hooks:
    """`start`, `accumulate0` and `merge0` (for each phase), `finish_row` and `finish_element`."""
    space = region.space
    known = _fields(region)
    row_roots, element_roots = _split_roots(region)
    functions = _state(region, known)
    for phase, anchors in enumerate(region.phases):
        functions += _accumulate(region, tile, buffers, phase, anchors, known)
        functions += _merge(phase, anchors, known)
    row = ix.unflatten(ix.var("row", space.rows), space.shape)
    emit = Emitter(buffers, outside(region), known)
    _store_roots(region, emit, [region.bases(row)], row_roots)
    functions += [Line("fn finish_row(row: u32, state: State) {"), *emit.lines, Line("}")]
    emit = Emitter(buffers, outside(region), known)
    if element_roots:
        terms = lanes_of(ix.var("k", space.length // tile.lanes), tile.lanes)
        _store_roots(region, emit, [region.bases(row, t) for t in terms], element_roots)
    functions += [
        Line("fn finish_element(row: u32, k: u32, state: State) {"),
        *emit.lines,
        Line("}"),
    ]
    terms_count = space.length // tile.lanes
    values: dict[str, int | bool] = {
        "ROWS": space.rows,
        "TERMS": terms_count,
        "TERMS_TO_STORE": terms_count if element_roots else 0,
        "ROWS_AT_ONCE": tile.rows,
        "PARTS": tile.parts,
        "THREADS": tile.threads,
        "SCRATCH": tile.threads if tile.parts > 1 else 1,
        "FOLD": FOLD,
    }
    grid = folded(math.ceil(space.rows / tile.rows))
    return Hooks("reduce", values, functions, {"PHASES": len(region.phases)}, grid)


def _fields(region: Region) -> dict[Node, str]:
    return {a: f"state.r{i}" for i, a in enumerate(region.anchors)}


def _split_roots(region: Region) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    space = {m.node: m.space for m in region.members}
    rows = tuple(n for n in region.roots if space[n] == "row")
    return rows, tuple(n for n in region.roots if space[n] != "row")


def _state(region: Region, known: dict[Node, str]) -> list[Line]:
    """The registers of a row: a field for each reduction, and the value beside the index for an
    argmax.
    """
    fields, starts = [], []
    for anchor in region.anchors:
        name = known[anchor].removeprefix("state.")
        if anchor.op.name == "argmax":
            source = anchor.inputs[0].dtype
            fields += [f"{name}_best: {source.wgsl}", f"{name}: i32"]
            starts += [_start("reduce_max", anchor.inputs[0]), "2147483647i"]
        else:
            fields.append(f"{name}: {anchor.dtype.wgsl}")
            starts.append(_start(anchor.op.name, anchor))
    return [
        Line("struct State { " + ", ".join(fields) + " }"),
        Line("fn start() -> State {"),
        Line(f"  return State({', '.join(starts)});"),
        Line("}"),
    ]


def _start(op: str, node: Node) -> str:
    low = lowest(node.dtype.numpy(0).dtype)
    return number({"sum": 0, "reduce_max": low, "reduce_min": -low}[op], node.dtype)


def _accumulate(
    region: Region,
    tile: ReduceTile,
    buffers: Buffers,
    phase: int,
    anchors: tuple[Node, ...],
    known: dict[Node, str],
) -> list[Line]:
    """One more term (or four) for every reduction of a phase."""
    space = region.space
    emit = Emitter(buffers, outside(region), known)
    row = ix.unflatten(ix.var("row", space.rows), space.shape)
    terms = lanes_of(ix.var("k", space.length // tile.lanes), tile.lanes)
    at = tuple(space.element(row, t) for t in terms)
    emit.put("var next = state;")
    for anchor in anchors:
        value = emit.value(anchor.inputs[0], at)
        field = known[anchor].removeprefix("state.")
        if anchor.op.name == "argmax":
            _accumulate_argmax(emit, anchor, field, value, tile.lanes)
        else:
            step = _horizontal(anchor, value, tile.lanes)
            emit.put(f"next.{field} = {_COMBINE[anchor.op.name](f'state.{field}', step)};", anchor)
    emit.put("return next;")
    head = Line(f"fn accumulate{phase}(row: u32, k: u32, state: State) -> State {{")
    return [head, *emit.lines, Line("}")]


_COMBINE: dict[str, Callable[[str, str], str]] = {
    "sum": lambda a, b: f"{a} + {b}",
    "reduce_max": lambda a, b: f"max({a}, {b})",
    "reduce_min": lambda a, b: f"min({a}, {b})",
}


def _horizontal(anchor: Node, value: str, lanes: int) -> str:
    """Four lanes combined into one."""
    if lanes == 1:
        return value
    combine = _COMBINE[anchor.op.name]
    if anchor.op.name == "sum":
        return f"(({value}.x + {value}.y) + ({value}.z + {value}.w))"
    return combine(combine(f"{value}.x", f"{value}.y"), combine(f"{value}.z", f"{value}.w"))


def _accumulate_argmax(emit: Emitter, anchor: Node, field: str, value: str, lanes: int) -> None:
    """Terms come in ascending order, so only a greater one replaces the first."""
    for lane in range(lanes):
        part = value if lanes == 1 else f"{value}[{lane}]"
        place = "i32(k)" if lanes == 1 else f"i32(k * 4u + {lane}u)"
        better = f"({part} > next.{field}_best) | (next.{field} == 2147483647i)"
        emit.put(f"if ({better}) {{ next.{field}_best = {part}; next.{field} = {place}; }}", anchor)


def _merge(phase: int, anchors: tuple[Node, ...], known: dict[Node, str]) -> list[Line]:
    """Two shares of a row become one."""
    lines = [Line(f"fn merge{phase}(a: State, b: State) -> State {{"), Line("  var both = a;")]
    for anchor in anchors:
        field = known[anchor].removeprefix("state.")
        if anchor.op.name == "argmax":
            greater = f"b.{field}_best > a.{field}_best"
            equal = f"(b.{field}_best == a.{field}_best) & (b.{field} < a.{field})"
            first = f"a.{field} == 2147483647i"
            better = f"(b.{field} != 2147483647i) & (({greater}) | ({equal}) | ({first}))"
            take = f"both.{field}_best = b.{field}_best; both.{field} = b.{field};"
            lines.append(
                Line(
                    f"  if ({better}) {{ {take} }}",
                    anchor,
                )
            )
        else:
            text = _COMBINE[anchor.op.name](f"a.{field}", f"b.{field}")
            lines.append(Line(f"  both.{field} = {text};", anchor))
    return [*lines, Line("  return both;"), Line("}")]


def matmul_hooks(region: Region, tile: MatmulTile, buffers: Buffers) -> Hooks:
    """`mg_tile` says which tile a workgroup makes; `load_a`, `load_b` give four neighbours along m
    and n; `store` takes four neighbouring sums of a row.
    """
    (anchor,) = region.anchors
    a, b = anchor.inputs
    batch, m, n = anchor.shape
    k = a.shape[-1]
    load_a = _load(region, buffers, "load_a", a, (batch, m, k), tile.bm, tile.bk)
    load_b = _load(region, buffers, "load_b", b, (batch, n, k), tile.bn, tile.bk)
    place, grid = _tile_of_group((math.ceil(n / tile.bn), math.ceil(m / tile.bm), batch))
    functions = [*place, *load_a, *load_b, *_store(region, tile, buffers, anchor)]
    bm4, bn4 = tile.bm // 4, tile.bn // 4
    values: dict[str, int | bool] = {
        "BATCH": batch,
        "K": k,
        "LAST_K": (k - 1) // tile.bk * tile.bk,
        "BM": tile.bm,
        "BK": tile.bk,
        "BM4": bm4,
        "BN4": bn4,
        "TM": tile.tm,
        "TM4": tile.tm // 4,
        "ACROSS": tile.bn // tile.tn,
        "THREADS": tile.threads,
        "ROW_A": bm4 + 1,
        "ROW_B": bn4 + 1,
        "SLICE_A": tile.bk * (bm4 + 1),
        "SLICE_B": tile.bk * (bn4 + 1),
        "UNROLL": tile.unroll,
        "A_ALONG_K": _along_k(region, a, (0, 1, 2)),
        "B_ALONG_K": _along_k(region, b, (0, 2, 1)),
    }
    counts = {
        "TM4": tile.tm // 4,
        "TN4": tile.tn // 4,
        "LOADS_A": bm4 * tile.bk // tile.threads,
        "LOADS_B": bn4 * tile.bk // tile.threads,
        "UNROLL": tile.unroll,
    }
    if tile.parts == 1:
        return Hooks("matmul", values, functions, counts, grid)
    sums = tile.tm * tile.tn // 4
    values |= {
        "PARTS": tile.parts,
        "WORKERS": tile.workers,
        "TN4": tile.tn // 4,
        "SUMS": sums,
        "MEET": sums * tile.threads,
    }
    return Hooks("matmul_parts", values, functions, counts, grid)


def _tile_of_group(tiles: tuple[int, int, int]) -> tuple[list[Line], tuple[int, int, int]]:
    """The hook that gives a workgroup its tile along n, m and the batch, and the grid: the tiles,
    numbered through where an axis has more of them than a grid may have.
    """
    across, down, batch = tiles
    head, grid = "fn mg_tile(group: vec3<u32>) -> vec3<u32> {", tiles
    body = [Line("  return group;")]
    if max(tiles) > MOST_GROUPS:
        grid = folded(across * down * batch)
        place = f"n % {across}u, n / {across}u % {down}u, n / {across * down}u"
        number = f"group.y * {FOLD}u + group.x"
        body = [Line(f"  let n = {number};"), Line(f"  return vec3<u32>({place});")]
    return [Line(head), *body, Line("}")], grid


def _load(
    region: Region,
    buffers: Buffers,
    name: str,
    node: Node,
    sizes: tuple[int, int, int],
    block: int,
    bk: int,
) -> list[Line]:
    """A load hook: four neighbours along the free axis (m for a, n for b) at one k; 0 outside."""
    batch, free, k = sizes
    side = "m" if name == "load_a" else "n"
    emit = Emitter(buffers, outside(region), {})
    at = _operand_lanes(
        name, ix.var("batch", batch), ix.var(f"{side}4", math.ceil(free / 4)), ix.var("k", k)
    )
    head = f"fn {name}(batch: u32, {side}4: u32, k: u32) -> vec4<f32> {{"
    if name == "load_b":
        head = "fn load_b(batch: u32, k: u32, n4: u32) -> vec4<f32> {"
    tests = [f"k >= {k}u"] if k % bk else []
    if free % 4 == 0:
        if free % block:
            tests.append(f"{side}4 >= {free // 4}u")
        if tests:
            emit.put(f"if ({' || '.join(tests)}) {{ return vec4<f32>(0.0); }}")
        emit.put(f"return {_single(node, emit.value(node, at), 4)};", node)
        return [Line(head), *emit.lines, Line("}")]
    if tests:
        emit.put(f"if ({tests[0]}) {{ return vec4<f32>(0.0); }}")
    emit.put("var four = vec4<f32>(0.0);")
    for lane in range(4):
        emit.open(f"if ({side}4 * 4u + {lane}u < {free}u)")
        emit.put(f"four[{lane}] = {_single(node, emit.value(node, at[lane : lane + 1]), 1)};", node)
        emit.close()
    emit.put("return four;")
    return [Line(head), *emit.lines, Line("}")]


def _single(node: Node, value: str, lanes: int) -> str:
    """A factor in 32 bits, in which products are summed."""
    if node.dtype.name == "f32":
        return value
    return f"f32({value})" if lanes == 1 else f"vec4<f32>({value})"


def _operand_lanes(name: str, batch: Index, free4: Index, k: Index) -> Lanes:
    lanes = lanes_of(free4, 4)
    return tuple((batch, p, k) if name == "load_a" else (batch, k, p) for p in lanes)


def _along_k(region: Region, node: Node, order: tuple[int, int, int]) -> bool:
    """Whether neighbours in memory are neighbours along k rather than along the free axis."""
    names = ("batch", "free", "k")
    at = tuple(ix.var(names[position], node.shape[axis]) for axis, position in enumerate(order))
    return fastest(region, node, at, ("free", "k")) == "k"


def _store(region: Region, tile: MatmulTile, buffers: Buffers, anchor: Node) -> list[Line]:
    """The epilogue: all roots at four neighbouring places of a row."""
    batch, m, n = anchor.shape
    known = "value" if anchor.dtype.name == "f32" else "rounded"
    emit = Emitter(buffers, outside(region), {anchor: known})
    tests = [f"m >= {m}u"] if m % tile.bm else []
    base = (ix.var("batch", batch), ix.var("m", m))
    lanes = [(*base, p) for p in lanes_of(ix.var("n4", math.ceil(n / 4)), 4)]
    if n % 4 == 0 and n % tile.bn:
        tests.append(f"n4 >= {n // 4}u")
    if tests:
        emit.put(f"if ({' || '.join(tests)}) {{ return; }}")
    if known == "rounded":
        emit.put(f"let rounded = {vector(anchor.dtype)}(value);", anchor)
    if n % 4 == 0:
        _store_roots(region, emit, [region.bases(at) for at in lanes], region.roots)
    else:
        for lane, at in enumerate(lanes):
            emit.open(f"if (n4 * 4u + {lane}u < {n}u)")
            emit.lane = lane
            _store_roots(region, emit, [region.bases(at)], region.roots)
            emit.close()
    head = Line("fn store(batch: u32, m: u32, n4: u32, value: vec4<f32>) {")
    return [head, *emit.lines, Line("}")]


__all__ = ["FOLD", "Hooks", "folded", "map_hooks", "matmul_hooks", "reduce_hooks", "vector"]
