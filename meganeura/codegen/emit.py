"""The emission pass: regions and tiles become kernels."""

from __future__ import annotations

from collections.abc import Mapping

from meganeura.codegen import prelude
from meganeura.codegen.expr import Buffers, Line
from meganeura.codegen.hooks import Hooks, arm_hooks, map_hooks, matmul_hooks, reduce_hooks
from meganeura.codegen.kernel import Binding, Kernel
from meganeura.codegen.link import constants, skeleton, unroll
from meganeura.codegen.names import Names
from meganeura.errors import TargetError
from meganeura.fuse.region import Region
from meganeura.ir.graph import Node
from meganeura.target import Target
from meganeura.tile.tile import MapTile, MatmulTile, ReduceTile, Tile
from meganeura.trace import note, stage


@stage("emit")
def emit(
    regions: tuple[Region, ...],
    tiles: tuple[Tile, ...],
    launches: tuple[tuple[int, ...], ...],
    target: Target,
) -> tuple[Kernel, ...]:
    """Regions with tiles -> kernels with WGSL, one for each launch's regions."""
    kernels = tuple(
        kernel(f"k{i}", tuple(regions[j] for j in arms), tuple(tiles[j] for j in arms))
        for i, arms in enumerate(launches)
    )
    for made in kernels:
        _check(made, target)
    note("lines", sum(k.wgsl.count("\n") for k in kernels))
    return kernels


def kernel(name: str, arms: tuple[Region, ...], tiles: tuple[Tile, ...]) -> Kernel:
    """The kernel of one region, or of several maps: generated to learn how buffers are used, and
    again, as they are then declared, when one is used in vectors and in single elements.
    """
    buffers = _buffers(arms, None)
    hooks = _hooks(arms, tiles, buffers)
    vectors = buffers.settle()
    if buffers.mixed:
        buffers = _buffers(arms, vectors)
        hooks = _hooks(arms, tiles, buffers)
    buffers.vectors = vectors
    bindings = _bindings(buffers)
    lines = _module(buffers, bindings, hooks)
    return Kernel(
        name=name,
        arms=arms,
        tile=tiles[0],
        wgsl="\n".join(line.text for line in lines) + "\n",
        line_nodes=_line_nodes(lines),
        bindings=bindings,
        grid=hooks.grid,
    )


def _buffers(arms: tuple[Region, ...], vectors: frozenset[Node] | None) -> Buffers:
    targets = {value: leaf for region in arms for leaf, value in region.updates}
    return Buffers(Names(), targets, vectors)


def _hooks(arms: tuple[Region, ...], tiles: tuple[Tile, ...], buffers: Buffers) -> Hooks:
    if len(arms) > 1:
        maps = [t for t in tiles if isinstance(t, MapTile)]
        return arm_hooks(list(zip(arms, maps, strict=True)), buffers)
    region, tile = arms[0], tiles[0]
    if isinstance(tile, MatmulTile):
        return matmul_hooks(region, tile, buffers)
    if isinstance(tile, ReduceTile):
        return reduce_hooks(region, tile, buffers)
    assert isinstance(tile, MapTile)
    return map_hooks(region, tile, buffers)


def _bindings(buffers: Buffers) -> tuple[Binding, ...]:
    """What is only read, in order of first use, then what is written."""
    read = [
        Binding(n, "read", buffers.names.of(n)) for n in buffers.read if n not in buffers.written
    ]
    return tuple(read + [Binding(n, "read_write", buffers.names.of(n)) for n in buffers.written])


def _module(buffers: Buffers, bindings: tuple[Binding, ...], hooks: Hooks) -> list[Line]:
    declared = [Line(_declaration(buffers, i, b)) for i, b in enumerate(bindings)]
    written = [*declared, *hooks.functions]
    head = [Line("enable f16;")] if any("f16" in line.text for line in written) else []
    body = [Line(text) for text in unroll(skeleton(hooks.skeleton), hooks.unroll)]
    helpers = prelude.needed("\n".join(line.text for line in hooks.functions))
    helper_lines = [Line(text) for text in helpers.split("\n")] if helpers else []
    blank = [Line("")]
    return [
        *head,
        *declared,
        *blank,
        *constants(hooks.constants),
        *helper_lines,
        *blank,
        *hooks.functions,
        *blank,
        *body,
    ]


def _declaration(buffers: Buffers, number: int, binding: Binding) -> str:
    kind = f"array<{_element(buffers, binding.node)}>"
    return f"@group(0) @binding({number}) var<storage, {binding.access}> {binding.name}: {kind};"


def _element(buffers: Buffers, node: Node) -> str:
    storage = node.dtype.storage
    return f"vec4<{storage}>" if buffers.vectors and node in buffers.vectors else storage


def _line_nodes(lines: list[Line]) -> Mapping[int, tuple[Node, ...]]:
    return {i: (line.node,) for i, line in enumerate(lines, 1) if line.node is not None}


def _check(made: Kernel, target: Target) -> None:
    """Limits of the adapter that a kernel must keep."""
    if len(made.bindings) > target.storage_buffers:
        raise TargetError(
            f"kernel {made.name} ({made.label}) binds {len(made.bindings)} buffers",
            expected=f"at most {target.storage_buffers} on {target.name}",
            got=str(len(made.bindings)),
            hint="compile with fuse=False, or name an intermediate tensor as an output",
            origin=made.region.roots[0].origin,
        )
    for region in made.arms:
        for node in region.nodes:
            _check_type(node, target)
    for binding in made.bindings:
        _check_type(binding.node, target)
        _check_size(binding.node, target)


def _check_type(node: Node, target: Target) -> None:
    """What is computed has a type that the adapter knows."""
    if node.dtype.name == "f16" and "shader-f16" not in target.features:
        raise TargetError(
            f"{target.name} has no 16-bit floats",
            expected="an adapter with the feature shader-f16",
            got="a tensor of f16",
            hint="use mg.f32 here",
            origin=node.origin,
        )


def _check_size(node: Node, target: Target) -> None:
    """A tensor lies in one buffer, which a kernel binds whole."""
    limit = min(target.storage_binding, target.buffer_size)
    if node.nbytes > limit:
        label = (
            f"the {node.op.name} {node.name!r}" if node.name else f"the result of {node.op.name}"
        )
        raise TargetError(
            f"{label} is too large for one buffer",
            expected=f"at most {limit:,} bytes on {target.name}",
            got=f"{list(node.shape)} {node.dtype}, {node.nbytes:,} bytes",
            hint="use a smaller batch, or split the tensor",
            origin=node.origin,
        )
