"""Layers as functions of tensors; parameters are made under the layer's name."""

from meganeura.nn.layers import (
    batch_norm,
    conv2d,
    dropout,
    embedding,
    group_norm,
    layer_norm,
    linear,
    rms_norm,
)
from meganeura.tensor.arrays import rotary_embedding as rotary

__all__ = [
    "batch_norm",
    "conv2d",
    "dropout",
    "embedding",
    "group_norm",
    "layer_norm",
    "linear",
    "rms_norm",
    "rotary",
]
