"""Meganeura: a compiler for tensor programs that lives in a notebook.

>>> import meganeura as mg
>>> x = mg.input("x", (128, 64))
>>> h = mg.relu(mg.nn.linear(x, 64, name="hidden"))
>>> h.shape
(128, 64)
"""

from __future__ import annotations

import difflib
import importlib
from typing import TYPE_CHECKING, Any

from meganeura import nn
from meganeura.ir.dtypes import bool_, f16, f32, i32, u32
from meganeura.tensor import (
    Tensor,
    arange,
    as_tensor,
    constant,
    full,
    init,
    input,
    ones,
    parameter,
    random,
    scope,
    zeros,
)
from meganeura.tensor.arrays import (
    cumsum,
    einsum,
    flip,
    roll,
    rotary_embedding,
    topk,
    tril,
    triu,
)
from meganeura.tensor.composed import (
    attention,
    avg_pool2d,
    bce_with_logits,
    cross_entropy,
    gelu,
    l1,
    log_softmax,
    logsumexp,
    max_pool2d,
    mse,
    relu,
    sigmoid,
    silu,
    softmax,
    softplus,
)
from meganeura.tensor.functions import (
    abs,
    argmax,
    clip,
    concat,
    conv2d,
    cos,
    detach,
    erf,
    exp,
    floor,
    gather,
    log,
    matmul,
    max,
    maximum,
    mean,
    min,
    minimum,
    neg,
    one_hot,
    pad,
    pow,
    recip,
    rsqrt,
    scatter_add,
    sign,
    sin,
    split,
    sqrt,
    stack,
    sum,
    tanh,
    var,
    where,
)
from meganeura.tensor.gradient import grad
from meganeura.tensor.images import adaptive_avg_pool2d, conv_transpose2d, resize
from meganeura.tensor.own import elementwise

# Two functions are called like the package that they come from. Imported now, they take its place;
# imported when they are asked for, any other import from the package would put it there again.
from meganeura.profile.measure import profile  # isort: skip
from meganeura.train import data  # isort: skip
from meganeura.train.loop import train  # isort: skip

if TYPE_CHECKING:
    from meganeura.plan import Options
    from meganeura.runtime.adapters import devices
    from meganeura.tensor.compile import compile
    from meganeura.train.metrics import Accuracy, evaluate
    from meganeura.train.optim import SGD, Adam, AdamW

__version__ = "0.1.0"

# What needs the device or the notebook is imported when it is first asked for: name -> module.
_LATER: dict[str, str] = {
    "compile": "meganeura.tensor.compile",
    "devices": "meganeura.runtime.adapters",
    "Options": "meganeura.plan",
    "SGD": "meganeura.train.optim",
    "Adam": "meganeura.train.optim",
    "AdamW": "meganeura.train.optim",
    "Accuracy": "meganeura.train.metrics",
    "evaluate": "meganeura.train.metrics",
}


def __getattr__(name: str) -> Any:
    module = _LATER.get(name)
    if module is None:
        near = difflib.get_close_matches(name, __all__, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise AttributeError(f"module 'meganeura' has no attribute {name!r}{hint}")
    return getattr(importlib.import_module(module), name)


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext meganeura`: magics, live views, drawings, errors with a caret."""
    from meganeura import notebook

    notebook.load_ipython_extension(shell)


def unload_ipython_extension(shell: Any) -> None:
    """`%unload_ext meganeura`: the shell as it was."""
    from meganeura import notebook

    notebook.unload_ipython_extension(shell)


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = [
    "SGD",
    "Accuracy",
    "Adam",
    "AdamW",
    "Options",
    "Tensor",
    "__version__",
    "abs",
    "adaptive_avg_pool2d",
    "arange",
    "argmax",
    "as_tensor",
    "attention",
    "avg_pool2d",
    "bce_with_logits",
    "bool_",
    "clip",
    "compile",
    "concat",
    "constant",
    "conv2d",
    "conv_transpose2d",
    "cos",
    "cross_entropy",
    "cumsum",
    "data",
    "detach",
    "devices",
    "einsum",
    "elementwise",
    "erf",
    "evaluate",
    "exp",
    "f16",
    "f32",
    "flip",
    "floor",
    "full",
    "gather",
    "gelu",
    "grad",
    "i32",
    "init",
    "input",
    "l1",
    "log",
    "log_softmax",
    "logsumexp",
    "matmul",
    "max",
    "max_pool2d",
    "maximum",
    "mean",
    "min",
    "minimum",
    "mse",
    "neg",
    "nn",
    "one_hot",
    "ones",
    "pad",
    "parameter",
    "pow",
    "profile",
    "random",
    "recip",
    "relu",
    "resize",
    "roll",
    "rotary_embedding",
    "rsqrt",
    "scatter_add",
    "scope",
    "sigmoid",
    "sign",
    "silu",
    "sin",
    "softmax",
    "softplus",
    "split",
    "sqrt",
    "stack",
    "sum",
    "tanh",
    "topk",
    "train",
    "tril",
    "triu",
    "u32",
    "var",
    "where",
    "zeros",
]
