"""What is known of a tensor's elements without running anything: a range, and whether NaN can
occur.

Rules with a domain (logarithms, quotients, square roots) fire only where these facts prove it.
Ranges bound every element that is not NaN, as the device computes it: a number that its type would
flush to zero or overflow is taken as such.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from meganeura.ir.dtypes import DType, bool_
from meganeura.ir.graph import Attrs, Op, Shape

INF = math.inf


class Facts(NamedTuple):
    """Every element is NaN (only if `nan`) or lies from `lo` to `hi`, both included."""

    lo: float
    hi: float
    nan: bool

    @property
    def value(self) -> float | None:
        """The one number that every element is, if it is known."""
        return self.lo if self.lo == self.hi and not self.nan else None

    @property
    def finite(self) -> bool:
        """True when no element can be NaN or infinite."""
        return not self.nan and self.lo > -INF and self.hi < INF

    def meet(self, other: Facts) -> Facts:
        """Both facts at once: they speak of the same tensor."""
        lo, hi = max(self.lo, other.lo), min(self.hi, other.hi)
        if lo > hi:  # they differ by rounding only: keep one of them
            return self
        return Facts(lo, hi, self.nan and other.nan)


ANYTHING = Facts(-INF, INF, True)
NUMBER = Facts(-INF, INF, False)
BOOLEAN = Facts(0.0, 1.0, False)

Rule = Callable[..., Facts]


def _times(a: float, b: float) -> float:
    return 0.0 if a == 0 or b == 0 else a * b


def _add(a: Facts, b: Facts) -> Facts:
    opposite = (a.hi == INF and b.lo == -INF) or (a.lo == -INF and b.hi == INF)
    lo = -INF if a.lo == -INF or b.lo == -INF else a.lo + b.lo
    hi = INF if a.hi == INF or b.hi == INF else a.hi + b.hi
    return Facts(lo, hi, a.nan or b.nan or opposite)


def _neg(a: Facts) -> Facts:
    return Facts(-a.hi, -a.lo, a.nan)


def _mul(a: Facts, b: Facts) -> Facts:
    corners = [_times(x, y) for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
    unbounded = INF in (a.hi, -a.lo) or INF in (b.hi, -b.lo)
    zero = a.lo <= 0 <= a.hi or b.lo <= 0 <= b.hi
    return Facts(min(corners), max(corners), a.nan or b.nan or (unbounded and zero))


def _recip(a: Facts) -> Facts:
    if a.lo > 0 or a.hi < 0:
        return Facts(1 / a.hi, 1 / a.lo, a.nan)
    return Facts(-INF, INF, a.nan)  # 1 / -0 is -inf


def _div(a: Facts, b: Facts) -> Facts:
    if b.lo > 0 or b.hi < 0:
        return _mul(a, _recip(b))
    return ANYTHING


def _exp(a: Facts) -> Facts:
    return Facts(_exponential(a.lo), _exponential(a.hi), a.nan)


def _exponential(x: float) -> float:
    return INF if x > 700 else math.exp(x) if x > -700 else 0.0


def _log(a: Facts) -> Facts:
    lo = math.log(a.lo) if 0 < a.lo < INF else -INF
    hi = math.log(a.hi) if 0 < a.hi < INF else a.hi if a.hi == INF else -INF
    return Facts(lo, max(hi, lo), a.nan or a.lo < 0)


def _sqrt(a: Facts) -> Facts:
    return Facts(math.sqrt(max(a.lo, 0)), math.sqrt(max(a.hi, 0)), a.nan or a.lo < 0)


def _rsqrt(a: Facts) -> Facts:
    root = _sqrt(a)
    return _recip(root)


def _abs(a: Facts) -> Facts:
    lo = 0.0 if a.lo <= 0 <= a.hi else min(abs(a.lo), abs(a.hi))
    return Facts(lo, max(abs(a.lo), abs(a.hi)), a.nan)


def _wave(a: Facts) -> Facts:
    return Facts(-1.0, 1.0, a.nan or INF in (a.hi, -a.lo))


def _monotone(function: Callable[[float], float]) -> Rule:
    return lambda a: Facts(function(a.lo), function(a.hi), a.nan)


def _floor(x: float) -> float:
    return float(math.floor(x)) if math.isfinite(x) else x


def _sign(x: float) -> float:
    return float((x > 0) - (x < 0))


def _pow(a: Facts, b: Facts) -> Facts:
    exponent = b.value
    if a.lo >= 0:
        return Facts(0.0, INF, a.nan or b.nan or exponent is None or exponent < 0)
    even = exponent is not None and exponent % 2 == 0 and exponent > 0
    return Facts(0.0 if even else -INF, INF, True)


def _max(a: Facts, b: Facts) -> Facts:
    return Facts(max(a.lo, b.lo), max(a.hi, b.hi), a.nan or b.nan)


def _min(a: Facts, b: Facts) -> Facts:
    return Facts(min(a.lo, b.lo), min(a.hi, b.hi), a.nan or b.nan)


def _lt(a: Facts, b: Facts) -> Facts:
    if a.lo >= b.hi:
        return Facts(0.0, 0.0, False)
    return Facts(1.0, 1.0, False) if a.hi < b.lo and not (a.nan or b.nan) else BOOLEAN


def _le(a: Facts, b: Facts) -> Facts:
    if a.lo > b.hi:
        return Facts(0.0, 0.0, False)
    return Facts(1.0, 1.0, False) if a.hi <= b.lo and not (a.nan or b.nan) else BOOLEAN


def _eq(a: Facts, b: Facts) -> Facts:
    if a.value is not None and a.value == b.value:
        return Facts(1.0, 1.0, False)
    return Facts(0.0, 0.0, False) if a.hi < b.lo or b.hi < a.lo else BOOLEAN


def _not(a: Facts) -> Facts:
    return Facts(1 - a.hi, 1 - a.lo, False)


def _where(condition: Facts, a: Facts, b: Facts) -> Facts:
    if condition.value is not None:
        return a if condition.value else b
    return Facts(min(a.lo, b.lo), max(a.hi, b.hi), a.nan or b.nan)


def _identity(a: Facts) -> Facts:
    return a


MAPS: Mapping[str, Rule] = {
    "neg": _neg,
    "abs": _abs,
    "exp": _exp,
    "log": _log,
    "sqrt": _sqrt,
    "rsqrt": _rsqrt,
    "recip": _recip,
    "sin": _wave,
    "cos": _wave,
    "tanh": _monotone(math.tanh),
    "erf": _monotone(math.erf),
    "floor": _monotone(_floor),
    "sign": _monotone(_sign),
    "add": _add,
    "sub": lambda a, b: _add(a, _neg(b)),
    "mul": _mul,
    "div": _div,
    "pow": _pow,
    "max": _max,
    "min": _min,
    "lt": _lt,
    "le": _le,
    "gt": lambda a, b: _lt(b, a),
    "ge": lambda a, b: _le(b, a),
    "eq": _eq,
    "ne": lambda a, b: _not(_eq(a, b)),
    "and": lambda a, b: Facts(min(a.lo, b.lo), min(a.hi, b.hi), False),
    "or": lambda a, b: Facts(max(a.lo, b.lo), max(a.hi, b.hi), False),
    "not": _not,
    "where": _where,
    "cast": _identity,
    "reshape": _identity,
    "permute": _identity,
    "expand": _identity,
    "slice": _identity,
}
"""How ranges go through the operations whose result has one element for each element read."""

SAME_TYPE = frozenset({"reduce_max", "reduce_min"})


def _count(shape: Shape, attrs: Mapping[str, Any]) -> int:
    return math.prod(shape[a] for a in attrs["axes"])


def _sum(a: Facts, n: int) -> Facts:
    if n == 0:
        return Facts(0.0, 0.0, False)
    both = a.lo == -INF and a.hi == INF
    return Facts(n * a.lo if a.lo else 0.0, n * a.hi if a.hi else 0.0, a.nan or both)


def _other(op: str, packed: Attrs, shapes: Sequence[Shape], known: Sequence[Facts]) -> Facts:
    attrs: dict[str, Any] = dict(packed)
    if op == "sum":
        return _sum(known[0], _count(shapes[0], attrs))
    if op in SAME_TYPE and _count(shapes[0], attrs):
        return known[0]
    if op == "pad":
        border = float(attrs["value"])
        return Facts(min(known[0].lo, border), max(known[0].hi, border), known[0].nan)
    if op == "gather" and 0 not in shapes[0]:
        return known[0]
    if op == "iota":
        shape, axis = attrs["shape"], attrs["axis"]
        return Facts(0.0, float(max(shape[axis] - 1, 0)), False)
    if op == "constant":
        return _of_array(attrs["value"].array)
    return ANYTHING


def _of_array(array: np.ndarray[Any, Any]) -> Facts:
    if array.size == 0:
        return ANYTHING
    if array.size == 1:
        value = float(array.item())
        return ANYTHING if math.isnan(value) else Facts(value, value, False)
    nan = bool(np.isnan(array).any()) if array.dtype.kind == "f" else False
    return ANYTHING if nan else Facts(float(array.min()), float(array.max()), False)


_SMALL = {"f32": float(np.finfo(np.float32).tiny), "f16": float(np.finfo(np.float16).tiny)}
_LARGE = {"f32": float(np.finfo(np.float32).max), "f16": float(np.finfo(np.float16).max)}
_ROUNDED = frozenset({"add", "sub", "mul", "div", "recip", "exp", "log", "sqrt", "rsqrt", "sum"})
_SLACK = {"f32": 2.0**-22, "f16": 2.0**-9}
_INTEGERS = {"i32": (-(2.0**31), 2.0**31 - 1), "u32": (0.0, 2.0**32 - 1)}


def _stored(facts: Facts, dtype: DType) -> Facts:
    """The range after numbers too small are flushed and numbers too large overflow."""
    small, large = _SMALL[dtype.name], _LARGE[dtype.name]
    lo = 0.0 if 0 < facts.lo < small else facts.lo
    hi = 0.0 if -small < facts.hi < 0 else facts.hi
    lo = -INF if lo < -large else INF if lo > large else lo
    hi = -INF if hi < -large else INF if hi > large else hi
    if lo == hi and math.isfinite(lo):
        lo = hi = float(dtype.numpy(lo))
    return Facts(lo, hi, facts.nan)


def _widened(facts: Facts, dtype: DType) -> Facts:
    """A little wider, since the device rounds; its sign and a known number stay."""
    if facts.lo == facts.hi:
        return facts
    slack = _SLACK[dtype.name]
    lo = facts.lo - abs(facts.lo) * slack if facts.lo > -INF else facts.lo
    hi = facts.hi + abs(facts.hi) * slack if facts.hi < INF else facts.hi
    return Facts(lo, hi, facts.nan)


def _in_type(facts: Facts, dtype: DType) -> Facts:
    """The facts as the type can hold them; integers that could wrap around are unknown."""
    if dtype is bool_:
        return facts if 0 <= facts.lo and facts.hi <= 1 else BOOLEAN
    if dtype.is_float:
        return _stored(facts, dtype)
    low, high = _INTEGERS[dtype.name]
    if facts.nan or facts.lo < low or facts.hi > high:
        return Facts(low, high, False)
    return Facts(float(math.trunc(facts.lo)), float(math.trunc(facts.hi)), False)


def _square(a: Facts) -> Facts:
    size = _abs(a)
    return Facts(size.lo * size.lo, size.hi * size.hi, a.nan)


def facts_of(
    op: Op,
    attrs: Attrs,
    dtype: DType,
    shapes: Sequence[Shape],
    known: Sequence[Facts],
    twins: bool = False,
) -> Facts:
    """What is known of an operation's result, from what is known of its operands.

    `twins` says that its two operands are one and the same.
    """
    rule = MAPS.get(op.name)
    if twins and op.name == "mul":
        found = _square(known[0])
    else:
        found = rule(*known) if rule is not None else _other(op.name, attrs, shapes, known)
    if found is ANYTHING and dtype.is_float:
        return found
    if op.name == "cast" and dtype is bool_:
        value = found.value
        return BOOLEAN if value is None else Facts(float(value != 0), float(value != 0), False)
    if op.name in _ROUNDED and dtype.is_float:
        found = _widened(found, dtype)
    return _in_type(found, dtype)
