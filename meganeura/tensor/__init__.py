"""The lazy user API: tensors, and functions from tensors to tensors."""

from meganeura.tensor.leaves import (
    arange,
    as_tensor,
    constant,
    full,
    input,
    ones,
    parameter,
    scope,
    zeros,
)
from meganeura.tensor.outputs import graph_of
from meganeura.tensor.tensor import Tensor, TensorLike, node_of

__all__ = [
    "Tensor",
    "TensorLike",
    "arange",
    "as_tensor",
    "constant",
    "full",
    "graph_of",
    "input",
    "node_of",
    "ones",
    "parameter",
    "scope",
    "zeros",
]
