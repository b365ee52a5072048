"""The reverse pass: from a scalar back to whatever it depends on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from meganeura import trace
from meganeura.autodiff.rules import EXEMPT, RULES, Rule
from meganeura.errors import GradientError
from meganeura.ir import build
from meganeura.ir.graph import Node, topological
from meganeura.ir.source import here


def backward(
    loss: Node, wrt: Sequence[Node], rules: Mapping[str, Rule] = RULES
) -> dict[Node, Node]:
    """The gradient of a scalar by each node of `wrt`, as nodes; zeros where it does not depend on
    one.

    `rules` may hold more rows, for operations of one's own. Raises GradientError for a loss that is
    no float scalar, for a node that is not of floats, and for an operation without a rule.

    >>> from meganeura.ir.graph import Graph
    >>> from meganeura.ir.evaluate import evaluate
    >>> x = build.input_("x", (3,))
    >>> gradient = backward(build.sum_(build.mul(x, x)), [x])[x]
    >>> evaluate(Graph((("g", gradient),)), {"x": [1, 2, 3]})["g"].tolist()
    [2.0, 4.0, 6.0]
    """
    _check(loss, wrt)
    order = topological([loss])
    targets = _targets(order, wrt)
    active = _active(order, set(targets.values()))
    parts: dict[Node, list[Node]] = {}
    found: dict[Node, Node] = {}
    if loss in active:
        with trace.as_gradient_of(loss):
            parts[loss] = [build.constant(1.0, loss.dtype)]
    for node in reversed(order):
        contributions = parts.pop(node, None)
        if contributions is None:
            continue
        found[node] = _total(node, contributions)
        for operand, gradient in _operands(node, found[node], active, rules):
            parts.setdefault(operand, []).append(gradient)
    return {node: found.get(targets[node]) or _zeros(node) for node in wrt}


def _made_at(node: Node) -> str:
    place = node.origin.where()
    return f", made at {place}" if place else ""


def _check(loss: Node, wrt: Sequence[Node]) -> None:
    if loss.shape != () or not loss.dtype.is_float:
        raise GradientError(
            "only a scalar has a gradient",
            expected="a loss of shape [] and type f32",
            got=f"{list(loss.shape)} {loss.dtype}" + _made_at(loss),
            hint="reduce it first, as in loss.mean() or loss.sum()",
            origin=here(),
        )
    for node in wrt:
        if not node.dtype.is_float:
            raise GradientError(
                f"no gradient by {node.name or node.op.name}: it is not of floats",
                expected="a tensor of f32 or f16",
                got=f"{list(node.shape)} {node.dtype}",
                hint="differentiate by the float tensor that it was made from",
                origin=here(),
            )


def _targets(order: Sequence[Node], wrt: Sequence[Node]) -> dict[Node, Node]:
    """Each node of `wrt` as the loss sees it: `named` makes a twin that differs by name alone."""
    known = set(order)
    twins: dict[object, Node] = {}
    for node in order:
        twins.setdefault(_apart_from_name(node), node)
    return {n: n if n in known else twins.get(_apart_from_name(n), n) for n in wrt}


def _apart_from_name(node: Node) -> object:
    return (node.op, node.inputs, node.attrs, replace(node.origin, name=None))


def _active(order: Sequence[Node], targets: set[Node]) -> set[Node]:
    """The nodes through which a gradient must pass: they depend on a target, through floats
    alone.
    """
    active: set[Node] = set()
    for node in order:
        if not node.dtype.is_float:
            continue
        through = node.op.name not in EXEMPT and any(n in active for n in node.inputs)
        if node in targets or through:
            active.add(node)
    return active


def _total(node: Node, contributions: Sequence[Node]) -> Node:
    with trace.as_gradient_of(node):
        total = contributions[0]
        for more in contributions[1:]:
            total = build.add(total, more)
        return total


def _operands(
    node: Node, g: Node, active: set[Node], rules: Mapping[str, Rule]
) -> list[tuple[Node, Node]]:
    """The contributions of one node to those of its operands through which a gradient passes."""
    if not any(n in active for n in node.inputs) or node.op.name in EXEMPT:
        return []
    rule = rules.get(node.op.name, node.op.gradient)
    if rule is None:
        raise GradientError(
            f"the operation {node.op.name} has no gradient rule",
            expected="a rule in the table of gradients, or with the operation",
            got="none",
            hint=f'give it one: mg.elementwise("{node.op.name}", ..., gradient=lambda g, x: ...)',
            origin=node.origin,
        )
    with trace.as_gradient_of(node):
        gradients = rule(node, g)
    pairs = zip(node.inputs, gradients, strict=True)
    return [(operand, d) for operand, d in pairs if d is not None and operand in active]


def _zeros(node: Node) -> Node:
    with trace.as_gradient_of(node):
        return build.broadcast_to(build.constant(0.0, node.dtype), node.shape)
