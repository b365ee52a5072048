"""Einstein's summation: a sum of products named by the letters of the axes, by matmul and permute.

Operands are joined from left to right. Letters that two operands share are the batch of a matmul
where something later needs them, and its inner axis where nothing does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from meganeura.errors import ShapeError
from meganeura.ir import build
from meganeura.ir.build import Operand
from meganeura.ir.composites.named import named
from meganeura.ir.dtypes import bool_, i32
from meganeura.ir.graph import Node
from meganeura.ir.shapes import show
from meganeura.ir.source import here


@dataclass(frozen=True)
class _Term:
    """A tensor whose axes have letters, each once."""

    letters: str
    node: Node

    def size(self, letter: str) -> int:
        return self.node.shape[self.letters.index(letter)]

    def ordered(self, letters: str) -> Node:
        """The tensor with its axes in this order."""
        return build.permute(self.node, [self.letters.index(c) for c in letters])

    def summed(self, keep: str) -> _Term:
        """Without the axes whose letters are not in `keep`."""
        gone = tuple(i for i, c in enumerate(self.letters) if c not in keep)
        left = "".join(c for c in self.letters if c in keep)
        return _Term(left, build.sum_(self.node, gone)) if gone else self


@named("einsum")
def einsum(equation: str, *operands: Operand) -> Node:
    """The sum of products that the equation names, such as "bij,bjk->bik".

    A letter names an axis of one size wherever it stands; a letter twice in one operand is its
    diagonal. Letters that the result lacks are summed. Without "->" the result has, in the order of
    the alphabet, the letters that stand once.
    """
    nodes = [build.as_node(x) for x in operands]
    inputs, output = _parse(equation, nodes)
    _check_sizes(equation, inputs, nodes)
    terms = [_diagonal(_Term(s, n)) for s, n in zip(inputs, nodes, strict=True)]
    result = terms[0]
    for i, term in enumerate(terms[1:], 2):
        needed = output + "".join(t.letters for t in terms[i:])
        result = _product(result, term, needed)
    return result.summed(output).ordered(output)


def _wrong(what: str, equation: str, expected: str, got: str) -> ShapeError:
    return ShapeError(
        f"einsum {equation!r}: {what}",
        expected=expected,
        got=got,
        hint='name each axis by a letter, as in mg.einsum("bij,bjk->bik", x, y)',
        origin=here(),
    )


def _parse(equation: str, nodes: Sequence[Node]) -> tuple[list[str], str]:
    """The letters of each operand, and those of the result."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    inputs = left.split(",")
    strange = "".join(c for c in left + right if not (c.isascii() and c.isalpha()) and c != ",")
    if strange or "," in right:
        raise _wrong("what is it?", equation, 'letters, "," and one "->"', strange or right)
    if len(inputs) != len(nodes):
        raise _wrong(
            "it names another number of operands", equation, str(len(inputs)), str(len(nodes))
        )
    for letters, node in zip(inputs, nodes, strict=True):
        if len(letters) != len(node.shape):
            expected = f"{len(letters)} axes for {letters!r}"
            raise _wrong("the axes do not fit", equation, expected, show(node.shape))
    everything = "".join(inputs)
    once = "".join(c for c in sorted(set(everything)) if everything.count(c) == 1)
    output = right if arrow else once
    bad = "".join(c for c in output if c not in everything or output.count(c) > 1)
    if bad:
        raise _wrong("the result", equation, "letters of the operands, each once", output)
    return inputs, output


def _check_sizes(equation: str, inputs: Sequence[str], nodes: Sequence[Node]) -> None:
    sizes: dict[str, int] = {}
    for letters, node in zip(inputs, nodes, strict=True):
        for letter, n in zip(letters, node.shape, strict=True):
            if sizes.setdefault(letter, n) != n:
                raise _wrong(
                    f"the letter {letter!r} has two sizes", equation, str(sizes[letter]), str(n)
                )


def _diagonal(term: _Term) -> _Term:
    """Each letter once: a letter that stands twice walks both of its axes together."""
    letters, node = term.letters, term.node
    for letter in dict.fromkeys(letters):
        while letters.count(letter) > 1:
            first = letters.index(letter)
            second = letters.index(letter, first + 1)
            rest = [i for i in range(len(letters)) if i not in (first, second)]
            shape = tuple(node.shape[i] for i in rest)
            n = node.shape[first]
            line = build.reshape(build.permute(node, [*rest, first, second]), (*shape, n * n))
            # Steps of n + 1 through a matrix of n columns are its diagonal.
            rank = len(shape) + 1
            node = build.slice_(line, (0,) * rank, (*shape, n * n), (*(1,) * (rank - 1), n + 1))
            letters = "".join(letters[i] for i in rest) + letter
    return _Term(letters, node)


def _product(a: _Term, b: _Term, needed: str) -> _Term:
    """Both terms as one, without the letters that nothing later needs."""
    a, b = a.summed(needed + b.letters), b.summed(needed + a.letters)
    shared = [c for c in a.letters if c in b.letters]
    batch = "".join(c for c in shared if c in needed)
    inner = "".join(c for c in shared if c not in needed)
    rows = "".join(c for c in a.letters if c not in shared)
    columns = "".join(c for c in b.letters if c not in shared)
    if inner and (a.node.dtype.is_float or b.node.dtype.is_float):
        return _by_matmul(a, b, batch, inner, rows, columns)
    wide = batch + rows + columns + inner
    x = build.mul(_spread(a, wide), _spread(b, wide))
    return _Term(wide, x).summed(batch + rows + columns)


def _by_matmul(a: _Term, b: _Term, batch: str, inner: str, rows: str, columns: str) -> _Term:
    def sizes(term: _Term, letters: str) -> tuple[int, ...]:
        return tuple(term.size(c) for c in letters)

    many, m, n = sizes(a, batch), sizes(a, rows), sizes(b, columns)
    lead = (math.prod(many),) if batch else ()
    k = math.prod(sizes(a, inner))
    left = build.reshape(a.ordered(batch + rows + inner), (*lead, math.prod(m), k))
    right = build.reshape(b.ordered(batch + inner + columns), (*lead, k, math.prod(n)))
    product = build.matmul(left, right)
    return _Term(batch + rows + columns, build.reshape(product, (*many, *m, *n)))


def _spread(term: _Term, letters: str) -> Node:
    """The tensor with an axis of 1 for each letter that it lacks."""
    known = "".join(c for c in letters if c in term.letters)
    shape = tuple(term.size(c) if c in term.letters else 1 for c in letters)
    node = term.node if term.node.dtype is not bool_ else build.cast(term.node, i32)
    return build.reshape(_Term(term.letters, node).ordered(known), shape)
