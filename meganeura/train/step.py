"""The training step: a second graph from the same program, with gradients and updates.

`before -> after`: the user's graph, to one with the loss as its only output and new values for
parameters and moments.
"""

from __future__ import annotations

from collections.abc import Sequence

from meganeura.autodiff import backward
from meganeura.errors import GradientError, OptionError
from meganeura.ir.graph import Graph, Node, topological
from meganeura.ir.mode import bind
from meganeura.trace import stage
from meganeura.train.optim import Optimizer, clip_by_norm, hyper_input


def step_graph(
    graph: Graph, loss: str | None, optimizer: Optimizer, clip_norm: float | None = None
) -> Graph:
    """The graph of one training step; its only output is the loss, under its name.

    Raises OptionError when `loss` names nothing, GradientError when it is no float scalar or
    depends on no trainable parameter.
    """
    return _step_graph(graph, loss, optimizer, clip_norm)


@stage("training step")
def _step_graph(
    graph: Graph, loss: str | None, optimizer: Optimizer, clip_norm: float | None
) -> Graph:
    name, node = find_loss(graph, loss)
    params = trainable(node)
    if not params:
        raise GradientError(
            f"the loss {name!r} depends on no trainable parameter",
            expected="at least one mg.parameter(...) with trainable=True",
            got="none",
            hint="make the weights with mg.parameter or a layer of mg.nn",
            origin=node.origin,
        )
    gradients = backward(node, params)
    grads = [gradients[param] for param in params]
    if clip_norm is not None:
        grads = clip_by_norm(grads, clip_norm)
    updates = optimizer.build(params, grads, hyper_input())
    return bind(Graph(((name, node),), (*graph.updates, *updates)), training=True)


def find_loss(graph: Graph, name: str | None) -> tuple[str, Node]:
    """The loss by name: an output, or any named tensor; without a name the only scalar output."""
    outputs = dict(graph.outputs)
    if name is None:
        scalars = [(n, node) for n, node in graph.outputs if _can_be_loss(node)]
        if len(scalars) != 1:
            raise OptionError(
                "which output is the loss?",
                expected="one scalar output of floats, or loss=",
                got=", ".join(repr(n) for n, _ in scalars) or "no scalar output",
                hint='name it, as in mg.train(program, loss="loss", ...)',
            )
        return scalars[0]
    if name in outputs:
        return _scalar(name, outputs[name])
    named = [node for node in graph.nodes if node.name == name and node.op.kind != "leaf"]
    if named:
        return _scalar(name, named[-1])
    raise OptionError(
        f"there is no tensor {name!r} to be the loss",
        expected="the name of a scalar: " + (_listed(outputs, graph) or "there is none"),
        got=repr(name),
        hint=f'name it in the cell, as in loss.named("{name}")',
    )


def _can_be_loss(node: Node) -> bool:
    return node.shape == () and node.dtype.is_float


def _scalar(name: str, node: Node) -> tuple[str, Node]:
    if not _can_be_loss(node):
        raise GradientError(
            f"the loss {name!r} is not a scalar of floats",
            expected="[] f32",
            got=f"{list(node.shape)} {node.dtype}",
            hint="reduce it first, as in loss.mean() or loss.sum()",
            origin=node.origin,
        )
    return name, node


def _listed(outputs: dict[str, Node], graph: Graph) -> str:
    named = {n.name: n for n in graph.nodes if n.name is not None and n.op.kind != "leaf"}
    return ", ".join(name for name, node in {**named, **outputs}.items() if _can_be_loss(node))


def trainable(loss: Node) -> list[Node]:
    """The parameters that training changes: trainable, of floats, and needed for the loss."""
    found: Sequence[Node] = topological([loss])
    params = [n for n in found if n.op.name == "parameter" and n.attr("trainable")]
    return sorted((n for n in params if n.dtype.is_float), key=lambda n: n.serial)
