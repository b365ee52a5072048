"""Composites: functions over primitive operations, kept named so that the views can show either
level.

Their gradients are those of the primitives.
"""

from meganeura.ir.composites.activations import (
    gelu,
    log_softmax,
    logsumexp,
    relu,
    sigmoid,
    silu,
    softmax,
    softplus,
)
from meganeura.ir.composites.attention import attention
from meganeura.ir.composites.losses import bce_with_logits, cross_entropy, l1, mse
from meganeura.ir.composites.norms import (
    batch_norm,
    dropout,
    group_norm,
    layer_norm,
    rms_norm,
    var,
)
from meganeura.ir.composites.pooling import avg_pool2d, max_pool2d
from meganeura.ir.composites.shaping import concat, normal, one_hot, split, stack, uniform

__all__ = [
    "attention",
    "avg_pool2d",
    "batch_norm",
    "bce_with_logits",
    "concat",
    "cross_entropy",
    "dropout",
    "gelu",
    "group_norm",
    "l1",
    "layer_norm",
    "log_softmax",
    "logsumexp",
    "max_pool2d",
    "mse",
    "normal",
    "one_hot",
    "relu",
    "rms_norm",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "split",
    "stack",
    "uniform",
    "var",
]
