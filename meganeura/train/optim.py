"""Optimisers: builders of the update graph, with PyTorch's semantics and defaults.

What changes with the step is worked out on the host in float64 and fed as `meganeura.hyper`, a
vector of eight floats: the kernels hold no power of the step, and a new learning rate compiles
nothing. Each parameter's update is elementwise.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from meganeura import trace
from meganeura.errors import OptionError
from meganeura.ir import build
from meganeura.ir.dtypes import f32
from meganeura.ir.graph import Array, Node
from meganeura.train.schedules import Schedule, rates

HYPER = "meganeura.hyper"
WIDTH = 8
Updates = list[tuple[Node, Node]]
"""Leaves that live on the device, each with its new value."""


class Optimizer(Protocol):
    """What the training loop asks of an optimiser."""

    @property
    def structure(self) -> Hashable:
        """All that the graph depends on: two optimisers of one structure share a compiled step."""
        ...

    def build(self, params: Sequence[Node], grads: Sequence[Node], hyper: Node) -> Updates:
        """The new values of the parameters and of the moments."""
        ...

    def table(self, start: int, count: int) -> Array:
        """The hyper vectors of `count` steps from `start`: float32 [count, 8]."""
        ...


def hyper_input() -> Node:
    """The leaf that brings the step's numbers to the device."""
    return build.dedicated(HYPER, (WIDTH,), f32)


@contextmanager
def _updating(param: Node) -> Iterator[None]:
    """Nodes made inside stand in the parameter's scope, at its line, in the update phase."""
    with ExitStack() as stack:
        for name in param.origin.scope:
            stack.enter_context(trace.scope(name))
        stack.enter_context(trace.phase("update", param))
        yield


def _scalars(hyper: Node, count: int) -> list[Node]:
    """The first numbers of the vector, as scalars."""
    with trace.phase("update"):
        return [build.reshape(build.slice_(hyper, (i,), (i + 1,), (1,)), ()) for i in range(count)]


def _table(count: int, *columns: Array) -> Array:
    table = np.zeros((count, WIDTH), np.float32)
    for index, column in enumerate(columns):
        table[:, index] = column
    return table


def _check(name: str, value: float, low: float, below: float = float("inf")) -> None:
    if not low <= value < below:
        limit = f" and < {below:g}" if below != float("inf") else ""
        raise OptionError(
            f"{name} is out of range", expected=f">= {low:g}{limit}", got=f"{value:g}"
        )


@dataclass(frozen=True)
class SGD:
    """Stochastic gradient descent, with momentum, Nesterov's look ahead and weight decay.

    `lr` is a number or any function of the step. Weight decay is added to the gradient. Source:
    Sutskever et al., 2013, in the form of `torch.optim.SGD`.
    """

    lr: float | Schedule = 1e-3
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        """Refuses numbers out of range."""
        _check_rate(self.lr)
        _check("momentum", self.momentum, 0)
        _check("weight_decay", self.weight_decay, 0)
        if self.nesterov and not self.momentum:
            raise OptionError("nesterov needs momentum", expected="momentum > 0", got="0")

    @property
    def structure(self) -> Hashable:
        """All that the graph depends on."""
        return ("sgd", self.momentum, self.nesterov, self.weight_decay)

    def build(self, params: Sequence[Node], grads: Sequence[Node], hyper: Node) -> Updates:
        """p - lr * (g + decay * p), through a velocity where there is momentum."""
        (lr,) = _scalars(hyper, 1)
        updates: Updates = []
        for param, grad in zip(params, grads, strict=True):
            with _updating(param):
                if self.weight_decay:
                    grad = build.add(grad, build.mul(param, self.weight_decay))
                if self.momentum:
                    velocity = build.state(f"{param.name}.velocity", param.shape)
                    moved = build.add(build.mul(velocity, self.momentum), grad)
                    updates.append((velocity, moved))
                    ahead = build.add(grad, build.mul(moved, self.momentum))
                    grad = ahead if self.nesterov else moved
                updates.append((param, build.sub(param, build.mul(grad, lr))))
        return updates

    def table(self, start: int, count: int) -> Array:
        """Column 0: the learning rate."""
        return _table(count, rates(self.lr, start, count))


def _check_rate(lr: float | Schedule) -> None:
    if not callable(lr):
        _check("lr", lr, 0)


def _adam_checks(betas: tuple[float, float], eps: float, weight_decay: float) -> None:
    for index, beta in enumerate(betas):
        _check(f"betas[{index}]", beta, 0, 1)
    _check("eps", eps, 0)
    _check("weight_decay", weight_decay, 0)


def _adam_step(
    param: Node, grad: Node, betas: tuple[float, float], eps: float, size: Node, root: Node
) -> tuple[Node, Updates]:
    """The step to subtract, and the new moments. `size` is lr / (1 - b1^t), `root` is 1 / sqrt(1 -
    b2^t).
    """
    first, second = betas
    m = build.state(f"{param.name}.m", param.shape)
    v = build.state(f"{param.name}.v", param.shape)
    new_m = build.add(m, build.mul(build.sub(grad, m), 1.0 - first))
    new_v = build.add(build.mul(v, second), build.mul(build.mul(grad, grad), 1.0 - second))
    scale = build.add(build.mul(build.sqrt(new_v), root), eps)
    return build.mul(size, build.div(new_m, scale)), [(m, new_m), (v, new_v)]


def _adam_columns(
    lr: float | Schedule, betas: tuple[float, float], start: int, count: int
) -> tuple[Array, Array, Array]:
    """Rate, step size, root of the second correction, in float64; steps count from 1 here."""
    rate = rates(lr, start, count)
    number = np.arange(start + 1, start + count + 1, dtype=np.float64)
    size = rate / (1.0 - betas[0] ** number)
    root = 1.0 / np.sqrt(1.0 - betas[1] ** number)
    return rate, size, root


@dataclass(frozen=True)
class Adam:
    """Adam: steps by the first moment over the root of the second, both corrected for their start
    at zero.

    Weight decay is added to the gradient. Source: Kingma and Ba, 2015, in the form of
    `torch.optim.Adam`.
    """

    lr: float | Schedule = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        """Refuses numbers out of range."""
        _check_rate(self.lr)
        _adam_checks(self.betas, self.eps, self.weight_decay)

    @property
    def structure(self) -> Hashable:
        """All that the graph depends on."""
        return ("adam", self.betas, self.eps, self.weight_decay)

    def build(self, params: Sequence[Node], grads: Sequence[Node], hyper: Node) -> Updates:
        """Parameters and both moments."""
        size, root = _scalars(hyper, 2)
        updates: Updates = []
        for param, grad in zip(params, grads, strict=True):
            with _updating(param):
                if self.weight_decay:
                    grad = build.add(grad, build.mul(param, self.weight_decay))
                step, moments = _adam_step(param, grad, self.betas, self.eps, size, root)
                updates += [*moments, (param, build.sub(param, step))]
        return updates

    def table(self, start: int, count: int) -> Array:
        """Columns: the corrected step size, the root of the second correction."""
        _, size, root = _adam_columns(self.lr, self.betas, start, count)
        return _table(count, size, root)


@dataclass(frozen=True)
class AdamW:
    """Adam with weight decay apart from the gradient: the parameter shrinks by lr * decay before
    the step.

    Source: Loshchilov and Hutter, 2019, in the form of `torch.optim.AdamW`.
    """

    lr: float | Schedule = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 1e-2

    def __post_init__(self) -> None:
        """Refuses numbers out of range."""
        _check_rate(self.lr)
        _adam_checks(self.betas, self.eps, self.weight_decay)

    @property
    def structure(self) -> Hashable:
        """All that the graph depends on; the decay is fed."""
        return ("adamw", self.betas, self.eps)

    def build(self, params: Sequence[Node], grads: Sequence[Node], hyper: Node) -> Updates:
        """Parameters and both moments."""
        size, root, keep = _scalars(hyper, 3)
        updates: Updates = []
        for param, grad in zip(params, grads, strict=True):
            with _updating(param):
                step, moments = _adam_step(param, grad, self.betas, self.eps, size, root)
                updates += [*moments, (param, build.sub(build.mul(param, keep), step))]
        return updates

    def table(self, start: int, count: int) -> Array:
        """Columns: the corrected step size, the root of the second correction, what is kept of a
        parameter.
        """
        rate, size, root = _adam_columns(self.lr, self.betas, start, count)
        return _table(count, size, root, 1.0 - rate * self.weight_decay)


def _balanced(terms: list[Node]) -> Node:
    """The sum as a tree, so that no launch waits for more than a few others in a row."""
    while len(terms) > 1:
        pairs = [build.add(a, b) for a, b in zip(terms[::2], terms[1::2], strict=False)]
        terms = pairs + terms[len(terms) & ~1 :]
    return terms[0]


def clip_by_norm(grads: Sequence[Node], limit: float) -> list[Node]:
    """All gradients times one scalar, so that their common length is at most `limit`.

    The length is over all of them together, as in `torch.nn.utils.clip_grad_norm_`. Each sum of
    squares fuses into what makes its gradient; the factor fuses into the updates.
    """
    if not limit > 0:
        raise OptionError("clip_norm is out of range", expected="> 0", got=f"{limit:g}")
    if not grads:
        return []
    with trace.phase("update"), trace.composite("clip by norm"):
        parts = [build.cast(grad, f32) for grad in grads]
        total = _balanced([build.sum_(build.mul(part, part)) for part in parts])
        factor = build.minimum(build.div(limit, build.add(build.sqrt(total), 1e-6)), 1.0)
        return [build.mul(grad, build.cast(factor, grad.dtype)) for grad in grads]
