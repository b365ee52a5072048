"""Activations, losses, normalisations and pooling, tensor to tensor: the composites of the IR."""

from __future__ import annotations

from collections.abc import Sequence

from meganeura.ir import composites
from meganeura.ir.build import Axis
from meganeura.tensor.tensor import Tensor, TensorLike, node_of

Sizes = int | Sequence[int]


def relu(x: TensorLike) -> Tensor:
    """max(x, 0); its gradient at 0 is 0."""
    return Tensor(composites.relu(node_of(x)))


def sigmoid(x: TensorLike) -> Tensor:
    """1 / (1 + exp(-x))."""
    return Tensor(composites.sigmoid(node_of(x)))


def silu(x: TensorLike) -> Tensor:
    """x * sigmoid(x), also called swish."""
    return Tensor(composites.silu(node_of(x)))


def gelu(x: TensorLike, approximate: str = "none") -> Tensor:
    """x times the normal distribution's share below x: by erf ("none") or by tanh ("tanh")."""
    return Tensor(composites.gelu(node_of(x), approximate))


def softplus(x: TensorLike) -> Tensor:
    """log(1 + exp(x))."""
    return Tensor(composites.softplus(node_of(x)))


def softmax(x: TensorLike, axis: Axis = -1) -> Tensor:
    """exp(x) over its sum along the axis."""
    return Tensor(composites.softmax(node_of(x), axis))


def log_softmax(x: TensorLike, axis: Axis = -1) -> Tensor:
    """The logarithm of softmax."""
    return Tensor(composites.log_softmax(node_of(x), axis))


def logsumexp(x: TensorLike, axis: Axis = -1, keepdims: bool = False) -> Tensor:
    """log(sum(exp(x))) along the axis."""
    return Tensor(composites.logsumexp(node_of(x), axis, keepdims))


def cross_entropy(logits: TensorLike, labels: TensorLike, reduction: str = "mean") -> Tensor:
    """Minus the log-probability of integer labels [...] under logits [..., C].

    `reduction` is "mean", "sum" or "none". ShapeError when there is not one label for each row.

    >>> import meganeura as mg
    >>> mg.cross_entropy(mg.zeros((4, 10)), mg.zeros((4,), mg.i32)).shape
    ()
    """
    return Tensor(composites.cross_entropy(node_of(logits), node_of(labels), reduction))


def bce_with_logits(logits: TensorLike, targets: TensorLike, reduction: str = "mean") -> Tensor:
    """Binary cross-entropy of targets in [0, 1] under logits of the same shape."""
    return Tensor(composites.bce_with_logits(node_of(logits), node_of(targets), reduction))


def mse(prediction: TensorLike, target: TensorLike, reduction: str = "mean") -> Tensor:
    """The squared difference of two tensors of one shape."""
    return Tensor(composites.mse(node_of(prediction), node_of(target), reduction))


def l1(prediction: TensorLike, target: TensorLike, reduction: str = "mean") -> Tensor:
    """The absolute difference of two tensors of one shape."""
    return Tensor(composites.l1(node_of(prediction), node_of(target), reduction))


def max_pool2d(
    x: TensorLike,
    size: Sizes,
    stride: Sizes | None = None,
    padding: int | Sequence[object] = 0,
    dilation: Sizes = 1,
) -> Tensor:
    """The greatest element of each window of [..., H, W]; windows stand `size` apart by default."""
    return Tensor(composites.max_pool2d(node_of(x), size, stride, padding, dilation))


def avg_pool2d(
    x: TensorLike,
    size: Sizes,
    stride: Sizes | None = None,
    padding: int | Sequence[object] = 0,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window of [..., H, W]; padding counts as zeros, or not at all."""
    return Tensor(composites.avg_pool2d(node_of(x), size, stride, padding, count_include_pad))


def attention(
    q: TensorLike,
    k: TensorLike,
    v: TensorLike,
    *,
    causal: bool = False,
    window: int | None = None,
    scale: float | None = None,
) -> Tensor:
    """softmax(q @ k.T * scale) @ v, by heads: q [..., H, T, D], k [..., G, S, D], v [..., G, S, E].

    With G < H, each key head serves H / G query heads. `causal`: a query sees no later key, where
    the last query stands at the last key. `window`: and only that many keys, its own the last.
    `scale` is 1 / sqrt(D) by default.
    """
    return Tensor(composites.attention(node_of(q), node_of(k), node_of(v), causal, window, scale))
