"""Gradients as ordinary tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import overload

from meganeura.autodiff import RULES, backward
from meganeura.autodiff.rules import Rule
from meganeura.errors import GradientError
from meganeura.ir.source import here
from meganeura.tensor.tensor import Tensor


@overload
def grad(loss: Tensor, wrt: Tensor, *, rules: Mapping[str, Rule] = ...) -> Tensor: ...
@overload
def grad(
    loss: Tensor, wrt: Sequence[Tensor], *, rules: Mapping[str, Rule] = ...
) -> tuple[Tensor, ...]: ...
def grad(
    loss: Tensor, wrt: Tensor | Sequence[Tensor], *, rules: Mapping[str, Rule] = RULES
) -> Tensor | tuple[Tensor, ...]:
    """The gradient of a scalar by a tensor, or by each of several; zeros where it does not depend
    on one.

    The results are ordinary tensors, so `grad` of a function of them gives gradients of any order.
    GradientError when the loss is no float scalar, or a tensor is not of floats.

    >>> import meganeura as mg
    >>> x = mg.input("x", (3,))
    >>> mg.grad((x * x).sum(), x).shape
    (3,)
    """
    tensors = [wrt] if isinstance(wrt, Tensor) else list(wrt)
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise GradientError(
                "a gradient is taken by tensors",
                expected="a tensor, or several",
                got=repr(tensor),
                hint="keep the tensor: w = mg.parameter(...); mg.grad(loss, [w])",
                origin=here(),
            )
    found = backward(loss.node, [t.node for t in tensors], rules)
    results = tuple(Tensor(found[t.node]) for t in tensors)
    return results[0] if isinstance(wrt, Tensor) else results
