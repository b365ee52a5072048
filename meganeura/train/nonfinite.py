"""Finding what made the first NaN or infinity, on the NumPy oracle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from meganeura.errors import NonFiniteError
from meganeura.ir.evaluate import evaluate_nodes
from meganeura.ir.graph import Array, Graph, Node, topological
from meganeura.train.feeds import Feeds
from meganeura.train.state import State
from meganeura.train.trail import Trail

_HINTS: Mapping[str, str] = {
    "log": "keep the argument of log above zero, as in mg.log(x + 1e-6)",
    "div": "keep the divisor away from zero, as in a / (b + 1e-6)",
    "recip": "keep the divisor away from zero, as in 1 / (x + 1e-6)",
    "rsqrt": "keep the argument of rsqrt above zero, as in mg.rsqrt(x + 1e-6)",
    "sqrt": "keep the argument of sqrt above zero: its gradient at zero is infinite",
    "exp": "keep the argument of exp below 88, as softmax does by taking off the maximum",
    "pow": "keep the base of pow above zero",
    "input": "look at the data: the batch itself is not finite",
}
_OTHERWISE = "take a smaller learning rate, or clip_norm=1.0"


@dataclass(frozen=True)
class Culprit:
    """The node that made the first non-finite value, and how it looked."""

    node: Node
    value: Array
    operands: tuple[Array, ...]

    def describe(self) -> str:
        """The operation, what came out, and what went in."""
        bad = ~np.isfinite(self.value)
        first = self.value[bad].flat[0]
        name = f" {self.node.name!r}" if self.node.name else ""
        count = f"{int(bad.sum()):,} of {bad.size:,} elements"
        ranges = ", ".join(_range(array) for array in self.operands if array.size)
        phase = self.node.origin.phase
        where = "" if phase == "forward" else f" ({phase})"
        come = f", from {ranges}" if ranges else ""
        return f"{self.node.op.name}{name}{where} makes {first:g} in {count}{come}"

    @property
    def hint(self) -> str:
        """What to try."""
        return _HINTS.get(self.node.op.name, _OTHERWISE)


def _range(array: Array) -> str:
    return f"[{array.min():.4g}, {array.max():.4g}]"


def _bad(value: Array) -> bool:
    return value.dtype.kind == "f" and not bool(np.isfinite(value).all())


def find_culprit(
    graph: Graph, values: Mapping[str, Array], roots: Iterable[Node] | None = None
) -> Culprit | None:
    """The first node, operands first, whose value is not finite though all its operands are; None
    when all is finite.

    `values` are those of inputs, parameters and states by name. Only nodes through which a bad
    value reaches a root count: what the other branch of a `where` holds does no harm.
    """
    wanted = tuple(graph.roots if roots is None else roots)
    named = {n.name: n for n in graph.nodes if n.op.kind == "leaf" and n.op.name != "constant"}
    given = {named[name]: value for name, value in values.items() if name in named}
    with np.errstate(all="ignore"):
        known = evaluate_nodes(wanted, given)
    guilty = _reached([root for root in wanted if _bad(known[root])], known)
    for node in topological(wanted):
        if node in guilty and not any(operand in guilty for operand in node.inputs):
            return Culprit(node, known[node], tuple(known[n] for n in node.inputs))
    return None


def _reached(roots: list[Node], known: Mapping[Node, Array]) -> set[Node]:
    """The non-finite nodes from which a root takes its bad value."""
    found = set(roots)
    stack = list(roots)
    while stack:
        node = stack.pop()
        for operand in _chosen(node, known):
            if operand not in found and _bad(known[operand]):
                found.add(operand)
                stack.append(operand)
    return found


def _chosen(node: Node, known: Mapping[Node, Array]) -> tuple[Node, ...]:
    """The operands that a node really uses: of a `where` those branches whose bad elements it
    takes.
    """
    if node.op.name != "where":
        return node.inputs
    condition, a, b = (known[n] for n in node.inputs)
    used = []
    if not np.isfinite(np.where(condition, a, 0)).all():
        used.append(node.inputs[1])
    if not np.isfinite(np.where(condition, 0, b)).all():
        used.append(node.inputs[2])
    return tuple(used)


def locate(
    trail: Trail,
    graph: Graph,
    step: int,
    replay: Callable[[list[Feeds]], State],
    complete: Callable[[int, list[Feeds]], list[Feeds]],
) -> tuple[State, int, Culprit | None]:
    """The last good state, its step, and what spoilt the loss of `step` (counted from 0).

    From the copy of the trail the steps are run again to just before the bad one. It may be the
    update of the step before that went wrong, so that one is looked at first.
    """
    count = step - trail.step
    feeds = trail.feeds(count + 1)
    if feeds is None or len(feeds) <= count:
        return trail.state, trail.step, None
    if count > 0:
        before = replay(feeds[: count - 1])
        (fed,) = complete(step - 1, [feeds[count - 1]])
        updates = [new for _, new in graph.updates]
        culprit = find_culprit(graph, {**before, **fed}, updates)
        if culprit is not None:
            return before, step - 1, culprit
    state = replay(feeds[:count]) if count else trail.state
    (fed,) = complete(step, [feeds[count]])
    return state, step, find_culprit(graph, {**state, **fed}, [n for _, n in graph.outputs])


def error_of(loss: str, value: float, step: int, culprit: Culprit | None) -> NonFiniteError:
    """The error for a loss that became `value` at a step, counted from 1."""
    if culprit is None:
        return NonFiniteError(
            f"the loss {loss!r} became {value:g} at step {step:,}",
            expected="a finite loss",
            got="the same step is finite in NumPy, so the first bad value is not known",
            hint=_OTHERWISE,
        )
    return NonFiniteError(
        f"the loss {loss!r} became {value:g} at step {step:,}",
        expected="finite values",
        got=culprit.describe(),
        hint=culprit.hint,
        origin=culprit.node.origin,
    )
