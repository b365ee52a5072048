"""Rules: an equation, built with the ordinary op API, under a line of English.

    @rule("The logarithm of a quotient is a difference.", where=positive("a", "b"))
    def log_of_quotient(a: Node, b: Node) -> Equation:
        return log(div(a, b)), sub(log(a), log(b))

The parameters are operands (`Node`, `Bool`), numbers known at compile time (`float`), and
attributes (`Shape`, `int`). The text of a rule is run once on a sample to learn what to look for,
and again on placeholders of the matched shapes to learn what to build; what it builds for equal
shapes is remembered. A right side is at least as well defined as its left side.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from types import FunctionType
from typing import Any

import numpy as np

from meganeura.errors import MeganeuraError
from meganeura.ir.dtypes import DType, bool_, f16, f32
from meganeura.ir.graph import Attrs, Node, Op, Shape, topological
from meganeura.ir.ops import INPUT
from meganeura.ir.source import Origin
from meganeura.rewrite.egraph import EClass
from meganeura.rewrite.equation import equation_text
from meganeura.rewrite.pattern import (
    Apply,
    Bindings,
    Literal,
    Number,
    Pattern,
    Var,
    pattern_of,
    variables,
)

Bool = Node
"""A parameter whose sample is a tensor of bool."""

Use = str
"""When a rule is on: "always", "inference", or "cost"."""

Side = Node | tuple[Node, ...]
Equation = tuple[Side, Side] | None
Sample = Mapping[str, Any]
Domain = Mapping[str, tuple[float, float]]
TRIES = 50


@dataclass(frozen=True)
class Condition:
    """When a rule may fire: in words, as a test of what was matched, and as the ranges that the
    tests draw from.
    """

    text: str
    test: Callable[[Mapping[str, Any]], bool]
    domain: Domain = field(default_factory=dict)

    def __and__(self, other: Condition) -> Condition:
        return Condition(
            f"{self.text}, and {other.text}",
            lambda found: self.test(found) and other.test(found),
            {**self.domain, **other.domain},
        )


def _facts(
    text: str, names: tuple[str, ...], test: Callable[[EClass], bool], span: tuple[float, float]
) -> Condition:
    subject = " and ".join(names)
    return Condition(
        f"{subject} {'is' if len(names) == 1 else 'are'} proved {text}",
        lambda found: all(test(found[n]) for n in names),
        dict.fromkeys(names, span),
    )


def positive(*names: str) -> Condition:
    """The operands are above 0 wherever they are numbers."""
    return _facts("positive", names, lambda c: c.facts.lo > 0, (0.25, 4.0))


def nonnegative(*names: str) -> Condition:
    """The operands are 0 or above wherever they are numbers."""
    return _facts("non-negative", names, lambda c: c.facts.lo >= 0, (0.0, 4.0))


def nonzero(*names: str) -> Condition:
    """The operands are never 0."""
    return _facts("other than 0", names, lambda c: c.facts.lo > 0 or c.facts.hi < 0, (0.25, 4.0))


def finite(*names: str) -> Condition:
    """The operands hold no NaN and no infinity."""
    return _facts("finite", names, lambda c: c.facts.finite, (-4.0, 4.0))


def floats(*names: str) -> Condition:
    """The operands are floats: integers have a least number, whose negation is itself."""
    verb = "is a float" if len(names) == 1 else "are floats"
    return Condition(
        f"{' and '.join(names)} {verb}",
        lambda found: all(found[n].dtype.is_float for n in names),
    )


def when(text: str, test: Callable[..., bool], **domain: tuple[float, float]) -> Condition:
    """A condition in words of its own; `test` takes by name the parameters that it speaks of."""
    wanted = tuple(inspect.signature(test).parameters)
    return Condition(text, lambda found: test(**{n: found[n] for n in wanted}), domain)


ALWAYS = Condition("", lambda found: True)


@dataclass(frozen=True)
class Row:
    """One node of a right side: its operands are rows before it, or (negative) variables."""

    op: Op
    attrs: Attrs
    refs: tuple[int, ...]
    sample: Node


@dataclass(frozen=True, eq=False)
class Template:
    """A right side for operands of given shapes, ready to be added; `tops` are its results, as
    refs.
    """

    rows: tuple[Row, ...]
    names: tuple[str, ...]
    tops: tuple[int, ...]
    left: tuple[Node, ...]
    right: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Rule:
    """An equation between terms, used from left to right."""

    name: str
    english: str
    function: FunctionType
    where: Condition
    draw: Callable[[random.Random], Sample] | None
    group: str
    text: str = ""
    use: Use = "always"

    @cached_property
    def kinds(self) -> dict[str, str]:
        """For each parameter: "Node", "Bool", "float", or another word for an attribute."""
        return {n: t for n, t in self.function.__annotations__.items() if n != "return"}

    @cached_property
    def many(self) -> str | None:
        """The parameter that stands for any number of operands, of a rule about several terms at
        once.
        """
        code = self.function.__code__
        takes_more = code.co_flags & inspect.CO_VARARGS
        return code.co_varnames[code.co_argcount] if takes_more else None

    def sample(self, seed: int) -> dict[str, Any]:
        """Arguments for the rule: placeholders as operands, values for numbers and attributes."""
        r = random.Random(f"{self.name}{seed}")
        shape = random_shape(r)
        drawn = dict(self.draw(r)) if self.draw is not None else {}
        taken: list[float] = []
        for name, kind in self.kinds.items():
            if name == self.many:
                drawn[name] = tuple(
                    placeholder(f"{name}{i}", s, f32) for i, s in enumerate(drawn[name])
                )
            elif kind in ("Node", "Bool"):
                drawn[name] = placeholder(
                    name, drawn.get(name, shape), bool_ if kind == "Bool" else f32
                )
            elif kind == "float" and name not in drawn:
                low, high = self.where.domain.get(name, (-4.0, 4.0))
                choices = [
                    i / 16 for i in range(int(low * 16), int(high * 16)) if i % 2 and abs(i) > 16
                ]
                drawn[name] = r.choice([c for c in choices if c not in taken])
                taken.append(drawn[name])
        return drawn

    def sides(
        self, arguments: Mapping[str, Any]
    ) -> tuple[tuple[Node, ...], tuple[Node, ...]] | None:
        """Both sides for arguments, as tuples; None where the rule has nothing to say."""
        given = dict(arguments)
        rest = given.pop(self.many) if self.many is not None else ()
        try:
            # A parameter for many operands comes after those for one.
            found = self.function(*given.values(), *rest) if rest else self.function(**given)
        except MeganeuraError:
            return None
        if found is None:
            return None
        left, right = found
        sides = (
            left if isinstance(left, tuple) else (left,),
            right if isinstance(right, tuple) else (right,),
        )
        fits = all(
            a.shape == b.shape and a.dtype is b.dtype and a is not b
            for a, b in zip(*sides, strict=True)
        )
        return sides if fits and not any(map(_overflows, sides[1])) else None

    @cached_property
    def pattern(self) -> Apply:
        """What the rule looks for, from the first sample that shows all of its parameters."""
        for seed in range(TRIES):
            arguments = self.sample(seed)
            sides = self.sides(arguments)
            if sides is None or not self._telling(arguments):
                continue
            pattern = self._pattern(sides[0][0], arguments)
            if variables(pattern) == set(self.kinds):
                return pattern
        raise ValueError(
            f"rule {self.name}: no sample shows all of {', '.join(self.kinds)} on its left side"
        )

    def _telling(self, arguments: Mapping[str, Any]) -> bool:
        """True when no two attributes of the sample are alike, so that each tells which parameter
        it is.
        """
        values = [v for n, v in arguments.items() if self.kinds[n] not in ("Node", "Bool")]
        return all(a != b for i, a in enumerate(values) for b in values[:i])

    def _pattern(self, left: Node, arguments: Mapping[str, Any]) -> Apply:
        operands = {
            (arguments[n][0] if n == self.many else arguments[n]): n
            for n, kind in self.kinds.items()
            if kind in ("Node", "Bool")
        }
        numbers = {n: arguments[n] for n, kind in self.kinds.items() if kind == "float"}
        attributes = {
            n: v for n, v in arguments.items() if self.kinds[n] not in ("Node", "Bool", "float")
        }
        return pattern_of(left, operands, attributes, numbers)

    @cached_property
    def equation(self) -> str:
        """Both sides of the rule as people write them."""
        return self.text or equation_text(self.function)


def rule(
    english: str,
    *,
    where: Condition = ALWAYS,
    draw: Callable[[random.Random], Sample] | None = None,
    text: str = "",
    use: Use = "always",
) -> Callable[[Callable[..., Equation]], Rule]:
    """Makes a rule of a function that returns both sides of an equation.

    `where` says when it holds; `draw` draws shapes of operands and values of attributes that fit
    each other, where operands of one random shape do not; `text` is the equation where the function
    cannot be read as one. `use` keeps a rule out of training graphs ("inference"), or out of all
    graphs ("cost"), unless the caller gives a cost: the default one cannot tell where it pays.
    """

    def decorate(function: Callable[..., Equation]) -> Rule:
        assert isinstance(function, FunctionType)
        group = function.__module__.rsplit(".", 1)[-1]
        return Rule(function.__name__, english, function, where, draw, group, text, use)

    return decorate


def ordinary(value: float, dtype: DType) -> bool:
    """True when the type holds the number in full precision, neither flushed nor overflown."""
    if not dtype.is_float:
        return False
    limits = np.finfo(np.float16 if dtype is f16 else np.float32)
    return float(limits.tiny) <= abs(value) <= float(limits.max)


def _overflows(side: Node) -> bool:
    """True when a number that a rule computed is too large for its type."""
    return any(
        node.op.name == "constant"
        and node.dtype.is_float
        and not np.isfinite(node.attr("value").array).all()
        for node in topological([side])
    )


def random_shape(r: random.Random, least: int = 0, most: int = 3) -> Shape:
    """A small shape of a random rank."""
    return tuple(r.choice((1, 2, 3, 5)) for _ in range(r.randint(least, most)))


def placeholder(name: str, shape: Shape, dtype: DType) -> Node:
    """An operand of which only shape and type are known."""
    return Node.make(INPUT, (), {"name": name, "shape": tuple(shape), "dtype": dtype}, Origin())


Key = tuple[Hashable, ...]


def template_key(rule: Rule, found: Mapping[str, Any], bound: Bindings) -> Key:
    """All that the right side of a match depends on: shapes, numbers, attributes."""
    seen: list[Hashable] = []
    for name, kind in rule.kinds.items():
        value = found[name]
        if name == rule.many:
            seen.append(tuple((c.shape, c.dtype) for c in value))
        else:
            seen.append((value.shape, value.dtype) if kind in ("Node", "Bool") else value)
    places = tuple((place, attrs) for place, attrs in bound.items() if isinstance(place, int))
    return (rule, tuple(seen), places)


@lru_cache(maxsize=16384)
def template(
    rule: Rule, seen: tuple[Any, ...], places: tuple[tuple[int, Attrs], ...]
) -> Template | None:
    """What a rule builds for operands of these shapes; None when its left side is not what was
    matched.
    """
    arguments: dict[str, Any] = {}
    names: dict[Node, str] = {}
    if any(
        k == "Bool" and v[1] is not bool_ for k, v in zip(rule.kinds.values(), seen, strict=True)
    ):
        return None  # an integer where the rule speaks of a condition
    for (name, kind), value in zip(rule.kinds.items(), seen, strict=True):
        if name == rule.many:
            arguments[name] = tuple(
                placeholder(f"{name}{i}", s, d) for i, (s, d) in enumerate(value)
            )
            names.update((n, f"{name}{i}") for i, n in enumerate(arguments[name]))
        elif kind in ("Node", "Bool"):
            arguments[name] = placeholder(name, *value)
            names[arguments[name]] = name
        else:
            arguments[name] = value
    sides = rule.sides(arguments)
    if sides is None or not _same(rule.pattern, sides[0][0], dict(places)):
        return None
    return _template(*sides, names)


def _same(pattern: Pattern, node: Node, places: Mapping[int, Attrs]) -> bool:
    """True when a left side, built for the matched shapes, has the matched operations and
    attributes.
    """
    if isinstance(pattern, Var):
        return node.op is INPUT
    if isinstance(pattern, (Number, Literal)):
        return True
    if node.op.name != pattern.op or node.attrs != places.get(pattern.place, ()):
        return False
    return all(_same(p, n, places) for p, n in zip(pattern.parts, node.inputs, strict=True))


def _template(
    left: tuple[Node, ...], right: tuple[Node, ...], names: Mapping[Node, str]
) -> Template:
    order = tuple(names.values())
    refs: dict[Node, int] = {node: ~order.index(name) for node, name in names.items()}
    rows: list[Row] = []
    for node in topological(right):
        if node not in refs:
            refs[node] = len(rows)
            rows.append(Row(node.op, node.attrs, tuple(refs[n] for n in node.inputs), node))
    return Template(tuple(rows), order, tuple(refs[n] for n in right), left, right)
