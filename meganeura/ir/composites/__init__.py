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
from meganeura.ir.composites.arranging import flip, roll, tril, triu
from meganeura.ir.composites.attention import attention
from meganeura.ir.composites.einsum import einsum
from meganeura.ir.composites.images import adaptive_avg_pool2d, conv_transpose2d, resize
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
from meganeura.ir.composites.ranking import topk
from meganeura.ir.composites.rotary import rotary_embedding
from meganeura.ir.composites.scans import cumsum
from meganeura.ir.composites.shaping import concat, normal, one_hot, split, stack, uniform

__all__ = [
    "adaptive_avg_pool2d",
    "attention",
    "avg_pool2d",
    "batch_norm",
    "bce_with_logits",
    "concat",
    "conv_transpose2d",
    "cross_entropy",
    "cumsum",
    "dropout",
    "einsum",
    "flip",
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
    "resize",
    "rms_norm",
    "roll",
    "rotary_embedding",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "split",
    "stack",
    "topk",
    "tril",
    "triu",
    "uniform",
    "var",
]
