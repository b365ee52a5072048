"""Running what leads to one tensor, for `tensor.numpy()`."""

from __future__ import annotations

import numpy as np

from meganeura.errors import FeedError
from meganeura.ir.graph import Array, Graph, Node
from meganeura.ir.mode import bind
from meganeura.ir.source import here
from meganeura.ir.spec import check_names


def run(node: Node) -> Array:
    """The value of the node on the default device; FeedError when it needs a feed."""
    from meganeura.compiler import compile_program

    graph = Graph((("value", node),))
    check_names(graph)
    missing = bind(graph, training=False).inputs
    if missing:
        names = ", ".join(repr(n.name) for n in missing)
        calls = ", ".join(f"{n.name}=..." for n in missing)
        raise FeedError(
            "the tensor depends on inputs, whose values only a call can give",
            expected="a tensor of parameters and constants alone",
            got=f"the inputs {names}",
            hint=f"compile it: mg.compile(tensor)({calls})",
            origin=here(),
        )
    program = compile_program(graph, name="value", kind="inference")
    return np.asarray(program())
