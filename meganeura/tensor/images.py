"""Images made larger and smaller, tensor to tensor."""

from __future__ import annotations

from collections.abc import Sequence

from meganeura.ir import composites
from meganeura.tensor.tensor import Tensor, TensorLike, node_of

Sizes = int | Sequence[int]


def conv_transpose2d(
    x: TensorLike,
    w: TensorLike,
    stride: Sizes = 1,
    padding: int | Sequence[object] = 0,
    output_padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Images [N, C, H, W] by filters [C, O/groups, KH, KW] to [N, O, OH, OW], as conv2d's gradient.

    OH = (H - 1) * stride - padding + dilation * (KH - 1) + output_padding + 1, the padding of both
    sides together. `output_padding`, less than the stride, chooses among the sizes that conv2d
    takes to H.

    >>> import meganeura as mg
    >>> x, w = mg.zeros((2, 8, 5, 5)), mg.zeros((8, 4, 3, 3))
    >>> mg.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1).shape
    (2, 4, 10, 10)
    """
    image, filters = node_of(x), node_of(w)
    return Tensor(
        composites.conv_transpose2d(
            image, filters, stride, padding, output_padding, dilation, groups
        )
    )


def resize(
    x: TensorLike, size: Sizes, mode: str = "nearest", align_corners: bool = False
) -> Tensor:
    """[..., H, W] at another size: "nearest" repeats or skips elements, "bilinear" weighs two.

    With `align_corners` the outermost elements of both images lie on each other, without it their
    outer edges. Neither mode smooths when it shrinks.

    >>> import meganeura as mg
    >>> mg.resize(mg.zeros((2, 3, 8, 8)), (16, 20), mode="bilinear").shape
    (2, 3, 16, 20)
    """
    return Tensor(composites.resize(node_of(x), size, mode, align_corners))


def adaptive_avg_pool2d(x: TensorLike, size: Sizes) -> Tensor:
    """[..., H, W] to [..., OH, OW] by means over windows that cover the image, overlapping where
    the sizes do not divide.

    >>> import meganeura as mg
    >>> mg.adaptive_avg_pool2d(mg.zeros((2, 3, 7, 9)), 1).shape
    (2, 3, 1, 1)
    """
    return Tensor(composites.adaptive_avg_pool2d(node_of(x), size))
