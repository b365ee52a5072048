"""Weights in safetensors files; training keeps its checkpoints in the same format."""

from meganeura.train.safetensors import File, read, write

__all__ = ["File", "read", "write"]
