"""Integer index expressions: what a view reads, in a normal form that simplifies itself.

An index is a sum of atoms with whole coefficients. Atoms are loop variables, and quotients and
remainders of indices by constants.
Every expression knows its least and greatest value, so that tests which cannot fail are never
written. Fusion propagates indices
through views to see what a tile reads; code generation prints them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

from meganeura.ir.graph import Node, Shape


@dataclass(frozen=True)
class Atom:
    """A variable, a quotient `of / by`, or a remainder `of % by`; `low` to `high` are its possible
    values.
    """

    kind: Literal["var", "div", "mod"]
    name: str = ""
    of: Index | None = None
    by: int = 1
    low: int = 0
    high: int = 0

    @cached_property
    def _hash(self) -> int:
        return hash((self.kind, self.name, self.of, self.by, self.high))

    def __hash__(self) -> int:
        return self._hash

    def sort_key(self) -> str:
        """A key for a stable order of terms."""
        return f"{self.kind}{self.name}{self.by}{self.of}"


@dataclass(frozen=True)
class Index:
    """`const + sum of coefficient * atom`, terms in a stable order."""

    terms: tuple[tuple[Atom, int], ...] = ()
    const: int = 0

    @cached_property
    def _hash(self) -> int:
        return hash((self.terms, self.const))

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def low(self) -> int:
        """The least possible value."""
        return self.const + sum(c * (a.low if c > 0 else a.high) for a, c in self.terms)

    @cached_property
    def high(self) -> int:
        """The greatest possible value."""
        return self.const + sum(c * (a.high if c > 0 else a.low) for a, c in self.terms)

    def __str__(self) -> str:
        return text(self)

    def divides(self, n: int) -> bool:
        """True when every value is a multiple of n, as far as the coefficients show."""
        return self.const % n == 0 and all(c % n == 0 for _, c in self.terms)


Indices = tuple[Index, ...]
ZERO = Index()


def const(value: int) -> Index:
    """A known number."""
    return Index((), value)


def var(name: str, count: int) -> Index:
    """A loop variable that runs from 0 to count - 1."""
    return Index(((Atom("var", name, low=0, high=count - 1), 1),)) if count > 1 else ZERO


def _normal(terms: dict[Atom, int], constant: int) -> Index:
    _recombine(terms)
    kept = [(a, c) for a, c in terms.items() if c != 0 and not (a.low == a.high == 0)]
    return Index(tuple(sorted(kept, key=lambda t: t[0].sort_key())), constant)


def _recombine(terms: dict[Atom, int]) -> None:
    """`c * (e / n) * n + c * (e % n)` becomes `c * e`, until nothing changes."""
    changed = True
    while changed:
        changed = False
        for atom, coefficient in list(terms.items()):
            if atom.kind != "mod" or atom.of is None or coefficient == 0:
                continue
            whole = _quotient_atom(atom.of, atom.by)
            if whole is None or terms.get(whole, 0) != coefficient * atom.by:
                continue
            del terms[whole], terms[atom]
            for inner, factor in atom.of.terms:
                terms[inner] = terms.get(inner, 0) + factor * coefficient
            if atom.of.const:
                one = Atom("var", "1", low=1, high=1)
                terms[one] = terms.get(one, 0) + atom.of.const * coefficient
            changed = True
            break


def _quotient_atom(e: Index, n: int) -> Atom | None:
    result = div(e, n)
    return (
        result.terms[0][0]
        if len(result.terms) == 1 and result.terms[0][1] == 1 and not result.const
        else None
    )


def _fold_ones(e: Index) -> Index:
    """The pseudo-variable that is always 1 becomes part of the constant."""
    ones = [(a, c) for a, c in e.terms if a.name == "1"]
    if not ones:
        return e
    return Index(tuple(t for t in e.terms if t[0].name != "1"), e.const + sum(c for _, c in ones))


def add(*parts: Index) -> Index:
    """The sum."""
    terms: dict[Atom, int] = {}
    for part in parts:
        for atom, c in part.terms:
            terms[atom] = terms.get(atom, 0) + c
    return _fold_ones(_normal(terms, sum(p.const for p in parts)))


def scale(e: Index, factor: int) -> Index:
    """A whole multiple."""
    if factor == 1:
        return e
    return Index(tuple((a, c * factor) for a, c in e.terms) if factor else (), e.const * factor)


def _split(e: Index, n: int) -> tuple[Index, Index]:
    """Terms whose coefficients n divides, and the rest (with the constant's remainder)."""
    whole = tuple(t for t in e.terms if t[1] % n == 0)
    rest = tuple(t for t in e.terms if t[1] % n)
    return Index(whole, e.const - e.const % n), Index(rest, e.const % n)


@lru_cache(maxsize=65536)
def div(e: Index, n: int) -> Index:
    """The quotient, for values of e that are not negative."""
    if n == 1:
        return e
    whole, rest = _split(e, n)
    outer = Index(tuple((a, c // n) for a, c in whole.terms), whole.const // n)
    if 0 <= rest.low and rest.high < n:
        return outer
    if rest.low < 0 or e.low < 0:
        return _atom_div(e, n)
    coarse = _coarsen(rest, n)
    if coarse is not None:
        big, _, step = coarse
        return add(outer, div(big, n // step))
    return add(outer, _atom_div(rest, n))


def _coarsen(e: Index, n: int) -> tuple[Index, Index, int] | None:
    """`e = step * big + small` with a step that divides n and `0 <= small < step`, or None."""
    for _, coefficient in e.terms:
        step = math.gcd(n, coefficient)
        if step == 1:
            continue
        big, small = _split(e, step)
        if big.terms and small.low >= 0 and small.high < step:
            return (
                Index(tuple((a, c // step) for a, c in big.terms), big.const // step),
                small,
                step,
            )
    return None


def _atom_div(e: Index, n: int) -> Index:
    if len(e.terms) == 1 and e.terms[0][1] == 1 and not e.const and e.terms[0][0].kind == "div":
        inner = e.terms[0][0]
        if inner.of is not None:
            return div(inner.of, inner.by * n)
    return Index(((Atom("div", of=e, by=n, low=e.low // n, high=e.high // n), 1),))


@lru_cache(maxsize=65536)
def mod(e: Index, n: int) -> Index:
    """The remainder, for values of e that are not negative."""
    if n == 1:
        return ZERO
    _, rest = _split(e, n)
    if 0 <= rest.low and rest.high < n:
        return rest
    source = e if e.low < 0 or rest.low < 0 else rest
    coarse = _coarsen(source, n) if source.low >= 0 else None
    if coarse is not None:
        big, small, step = coarse
        return add(scale(mod(big, n // step), step), small)
    if len(source.terms) == 1 and source.terms[0][1] == 1 and not source.const:
        inner = source.terms[0][0]
        if inner.kind == "mod" and inner.of is not None and inner.by % n == 0:
            return mod(inner.of, n)
    return Index(((Atom("mod", of=source, by=n, low=0, high=min(n - 1, max(source.high, 0))), 1),))


@lru_cache(maxsize=4096)
def strides(shape: Shape) -> tuple[int, ...]:
    """Elements from one index to the next on each axis of a dense tensor."""
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


@lru_cache(maxsize=65536)
def flatten(indices: Indices, shape: Shape) -> Index:
    """The position in a dense tensor."""
    parts = [scale(i, s) for i, s in zip(indices, strides(shape), strict=True)]
    return add(*parts) if parts else ZERO


@lru_cache(maxsize=65536)
def unflatten(flat: Index, shape: Shape) -> Indices:
    """The index on each axis of a position in a dense tensor."""
    result = []
    for axis, (n, s) in enumerate(zip(shape, strides(shape), strict=True)):
        quotient = div(flat, s) if s else flat
        result.append(
            quotient if axis == 0 and flat.high < n * s else mod(quotient, n) if n else ZERO
        )
    return tuple(result)


@dataclass(frozen=True)
class Guard:
    """What must hold for a view to read: `0 <= value < count`, or `value % count == 0`."""

    kind: Literal["range", "multiple"]
    value: Index
    count: int

    @property
    def certain(self) -> bool:
        """True when it cannot fail."""
        if self.kind == "range":
            return self.value.low >= 0 and self.value.high < self.count
        return self.count == 1 or self.value.divides(self.count)

    @property
    def impossible(self) -> bool:
        """True when it always fails."""
        if self.kind == "range":
            return self.value.high < 0 or self.value.low >= self.count
        return not self.value.terms and self.value.const % self.count != 0


@dataclass(frozen=True)
class Read:
    """What a view reads at an index: the index into its operand, guards, and the value where one
    fails.
    """

    indices: Indices
    guards: tuple[Guard, ...] = ()
    fill: float = 0.0


def read(view: Node, at: Indices) -> Read:
    """The index into the operand of a view for the element `at` of its result."""
    return _READS[view.op.name](view, at)


def _read_reshape(view: Node, at: Indices) -> Read:
    return Read(unflatten(flatten(at, view.shape), view.inputs[0].shape))


def _read_permute(view: Node, at: Indices) -> Read:
    axes = view.attr("axes")
    source = [ZERO] * len(axes)
    for position, axis in enumerate(axes):
        source[axis] = at[position]
    return Read(tuple(source))


def _read_expand(view: Node, at: Indices) -> Read:
    return Read(tuple(ZERO if n == 1 else i for i, n in zip(at, view.inputs[0].shape, strict=True)))


def _read_slice(view: Node, at: Indices) -> Read:
    spans = zip(at, view.attr("start"), view.attr("step"), strict=True)
    return Read(tuple(add(scale(i, step), const(start)) for i, start, step in spans))


def _read_pad(view: Node, at: Indices) -> Read:
    source = view.inputs[0].shape
    shifted = tuple(add(i, const(-low)) for i, low in zip(at, view.attr("low"), strict=True))
    padded = zip(shifted, source, view.attr("low"), view.attr("high"), strict=True)
    guards = tuple(Guard("range", i, n) for i, n, low, high in padded if low or high)
    return Read(shifted, tuple(g for g in guards if not g.certain), view.attr("value"))


def _read_windows(view: Node, at: Indices) -> Read:
    k, source = len(view.attr("size")), view.inputs[0].shape
    lead = len(source) - k
    inner, guards = list(at[:lead]), []
    for axis in range(k):
        start, tap = at[lead + axis], at[lead + k + axis]
        step, dilation = view.attr("stride")[axis], view.attr("dilation")[axis]
        where = add(scale(start, step), scale(tap, dilation), const(-view.attr("padding")[axis][0]))
        inner.append(where)
        guards.append(Guard("range", where, source[lead + axis]))
    return Read(tuple(inner), tuple(g for g in guards if not g.certain), view.attr("value"))


def _read_unwindows(view: Node, at: Indices) -> Read:
    k, source = len(view.attr("shape")), view.inputs[0].shape
    lead = len(source) - 2 * k
    inner, guards = list(at[:lead]), []
    for axis in range(k):
        element, tap = at[lead + axis], at[lead + k + axis]
        step, dilation = view.attr("stride")[axis], view.attr("dilation")[axis]
        where = add(element, scale(tap, -dilation), const(view.attr("padding")[axis][0]))
        inner.append(div(where, step))
        guards += [
            Guard("range", where, (source[lead + axis] - 1) * step + 1),
            Guard("multiple", where, step),
        ]
    inner += at[lead + k :]
    return Read(tuple(inner), tuple(g for g in guards if not g.certain), 0.0)


_READS = {
    "reshape": _read_reshape,
    "permute": _read_permute,
    "expand": _read_expand,
    "slice": _read_slice,
    "pad": _read_pad,
    "windows": _read_windows,
    "unwindows": _read_unwindows,
}


def write(view: Node, at: Indices) -> Indices | None:
    """Where a view shows the element `at` of its operand; None when it is not one place."""
    if view.op.name == "reshape":
        return unflatten(flatten(at, view.inputs[0].shape), view.shape)
    if view.op.name == "permute":
        return tuple(at[a] for a in view.attr("axes"))
    return None


def text(e: Index) -> str:
    """The expression in WGSL, in u32; subtrahends come last so that no difference is negative on
    the way.
    """
    plus = [_term(a, c) for a, c in e.terms if c > 0]
    minus = [_term(a, -c) for a, c in e.terms if c < 0]
    if e.const > 0 or not plus:
        plus.append(f"{max(e.const, 0)}u")
    if e.const < 0:
        minus.append(f"{-e.const}u")
    joined = " + ".join(plus)
    return joined if not minus else f"{joined} - " + " - ".join(minus)


def _term(atom: Atom, coefficient: int) -> str:
    if atom.kind == "var":
        base = atom.name
    else:
        inner = text(atom.of) if atom.of is not None else ""
        simple = atom.of is not None and len(atom.of.terms) == 1 and not atom.of.const
        inner = (
            inner if simple and atom.of is not None and atom.of.terms[0][1] == 1 else f"({inner})"
        )
        base = f"{inner} {'/' if atom.kind == 'div' else '%'} {atom.by}u"
    if coefficient == 1:
        return base if atom.kind == "var" else f"({base})"
    return f"{base} * {coefficient}u" if atom.kind == "var" else f"({base}) * {coefficient}u"


def condition(guard: Guard) -> str:
    """A guard in WGSL: sums of u32 on both sides, so that a negative value never wraps."""
    if guard.kind == "multiple":
        return f"({text(guard.value)}) % {guard.count}u == 0u"
    plus = Index(tuple(t for t in guard.value.terms if t[1] > 0), max(guard.value.const, 0))
    minus = Index(tuple((a, -c) for a, c in guard.value.terms if c < 0), max(-guard.value.const, 0))
    tests = []
    if guard.value.low < 0:
        tests.append(f"{text(plus)} >= {text(minus)}")
    if guard.value.high >= guard.count:
        tests.append(f"{text(plus)} < {text(add(minus, const(guard.count)))}")
    return " && ".join(tests)
