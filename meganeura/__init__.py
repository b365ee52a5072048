"""Meganeura: a compiler for tensor programs that lives in a notebook.

>>> import meganeura as mg
>>> x = mg.input("x", (128, 64))
>>> h = mg.relu(mg.nn.linear(x, 64, name="hidden"))
>>> h.shape
(128, 64)
"""

from __future__ import annotations

import importlib
from typing import Any

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
from meganeura.tensor.composed import (
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

__version__ = "0.1.0"

# What needs the device or the notebook is imported when it is first asked for: name -> module.
_LATER: dict[str, str] = {
    "compile": "meganeura.tensor.compile",
    "devices": "meganeura.runtime.adapters",
    "Options": "meganeura.plan",
    "train": "meganeura.train.loop",
    "profile": "meganeura.profile.profile",
    "SGD": "meganeura.train.optim",
    "Adam": "meganeura.train.optim",
    "AdamW": "meganeura.train.optim",
}


def __getattr__(name: str) -> Any:
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module 'meganeura' has no attribute {name!r}")
    return getattr(importlib.import_module(module), name)


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = [
    "SGD",
    "Adam",
    "AdamW",
    "Options",
    "Tensor",
    "__version__",
    "abs",
    "arange",
    "argmax",
    "as_tensor",
    "avg_pool2d",
    "bce_with_logits",
    "bool_",
    "clip",
    "compile",
    "concat",
    "constant",
    "conv2d",
    "cos",
    "cross_entropy",
    "detach",
    "devices",
    "erf",
    "exp",
    "f16",
    "f32",
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
    "random",
    "recip",
    "relu",
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
    "train",
    "u32",
    "var",
    "where",
    "zeros",
]
