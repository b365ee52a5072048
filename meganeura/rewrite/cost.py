"""What a node costs: bytes moved, flops, and a share of a launch, all counted in bytes.

The default for when nobody knows the device. The compiler may pass another function of a node: a
low floor that needs a high fact takes it as an argument.
"""

from __future__ import annotations

import math

from meganeura.ir.graph import Node

FLOPS_PER_BYTE = 16.0
"""What a GPU computes in the time in which it moves one byte: 10 to 30 in float32 on those of
today.
"""

LAUNCH_BYTES = 500_000.0
"""What a GPU moves in the time that one more dependent launch costs: about 1 µs at 0.5 TB/s."""

REGISTER_BYTES = 0.25
"""The share of a map's result that is taken to move: most maps are fused into their readers."""

VIEW = 0.001
"""Views are free; a little keeps the shorter of two equal chains."""

PADDED = 1.0
"""Bytes moved for each byte of a padded tensor: with a concatenation of two, each is read and
written once.
"""

EXPENSIVE = {
    "recip": 4,
    "div": 5,
    "sqrt": 4,
    "rsqrt": 4,
    "exp": 8,
    "log": 8,
    "sin": 8,
    "cos": 8,
    "tanh": 12,
    "erf": 16,
    "pow": 24,
    "mod": 8,
    "where": 1,
    "cast": 1,
    "neg": 0.5,
}
"""Instructions an element, where the table of operations counts one operation."""


def flops(node: Node) -> float:
    """Arithmetic of a node: by element of the result, of the operand for reductions, 2mnk for
    products.
    """
    kind = node.op.kind
    if kind == "map":
        return float(node.size * EXPENSIVE.get(node.op.name, node.op.flops))
    if kind == "reduce":
        return float(node.inputs[0].size * node.op.flops)
    if node.op.name == "matmul":
        return 2.0 * node.size * node.inputs[0].shape[-1]
    if node.op.name.startswith("conv2d"):
        return 2.0 * _taps(node)
    return float(node.size * node.op.flops)


def _taps(node: Node) -> float:
    """Multiplications of a convolution, or of one of its two gradients."""
    image, filters = node, node.inputs[1]
    if node.op.name == "conv2d_input":
        image = node.inputs[0]
    elif node.op.name == "conv2d_weight":
        image, filters = node.inputs[1], node
    return float(image.size * math.prod(filters.shape[1:]))


def bytes_moved(node: Node) -> float:
    """Bytes that the node alone makes move: operands and result of what is a kernel of its own."""
    kind = node.op.kind
    if kind == "map":
        return node.nbytes * REGISTER_BYTES
    if kind in ("reduce", "contract", "gather"):
        return float(sum(n.nbytes for n in node.inputs) + node.nbytes)
    return 0.0


def default_cost(node: Node) -> float:
    """The price of a node in bytes: moved, computed at `FLOPS_PER_BYTE`, and a launch for what
    cannot be fused away.

    >>> from meganeura.ir import build
    >>> x = build.input_("x", (8, 8))
    >>> default_cost(x), default_cost(build.transpose(x)) < 1 < default_cost(build.exp(x))
    (0.0, True)
    """
    kind = node.op.kind
    if kind == "leaf":
        return 0.0
    if node.op.name == "pad":
        return node.nbytes * PADDED + VIEW
    if kind == "view":
        return VIEW
    launch = LAUNCH_BYTES if kind in ("reduce", "contract", "gather") else 0.0
    return bytes_moved(node) + flops(node) / FLOPS_PER_BYTE + launch + VIEW
