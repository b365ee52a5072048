"""An operation of one's own: one more row of the table, made in a cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from meganeura.errors import NameClashError, OptionError
from meganeura.ir import build, ops
from meganeura.ir.graph import Node, Op
from meganeura.ir.source import here
from meganeura.tensor.tensor import Tensor, TensorLike, node_of

Gradient = Callable[..., Tensor | Sequence[Tensor]]


def elementwise(
    name: str,
    *,
    numpy: Callable[..., Any],
    wgsl: str,
    gradient: Gradient | None = None,
    inputs: int = 1,
    flops: int = 1,
) -> Callable[..., Tensor]:
    """A function of tensors from what an operation means in NumPy and in WGSL.

    `wgsl` is an expression of `{0}`, `{1}` ..., which are `f32` or `vec4<f32>`: it must be valid
    for both. `gradient(g, *operands)` gives the gradient of each operand as tensors, from the one
    of the result; without it the function cannot be differentiated. `flops` counts per element.
    It is fused like any other. NameClashError for the name of an operation that there is.

    >>> import numpy as np, meganeura as mg
    >>> cube = mg.elementwise(
    ...     "cube",
    ...     numpy=lambda x: x**3,
    ...     wgsl="({0} * {0} * {0})",
    ...     gradient=lambda g, x: g * 3 * x * x,
    ... )
    >>> cube(mg.input("x", (4,))).shape
    (4,)
    """
    if name in ops.OPS:
        raise NameClashError(
            f"there is an operation {name!r} already",
            expected="a name of its own",
            got=repr(name),
            hint=f'call it "my_{name}"',
            origin=here(),
        )
    row = replace(ops.elementwise(name, inputs, numpy, wgsl, flops=flops), gradient=_rule(gradient))

    def function(*operands: TensorLike) -> Tensor:
        if len(operands) != inputs:
            raise OptionError(
                f"{name} takes {inputs} tensors",
                expected=str(inputs),
                got=str(len(operands)),
                origin=here(),
            )
        return Tensor(_applied(row, operands))

    function.__name__ = name
    function.__doc__ = f"The elementwise operation {name}."
    return function


def _applied(row: Op, operands: Sequence[TensorLike]) -> Node:
    nodes = build.meet([node_of(x) for x in operands])
    return build.apply(row, *nodes)


def _rule(gradient: Gradient | None) -> Callable[[Node, Node], tuple[Node | None, ...]] | None:
    """A rule on nodes from a function of tensors."""
    if gradient is None:
        return None

    def rule(node: Node, g: Node) -> tuple[Node | None, ...]:
        found = gradient(Tensor(g), *map(Tensor, node.inputs))
        several = (found,) if isinstance(found, Tensor) else tuple(found)
        return tuple(t.node for t in several)

    return rule
