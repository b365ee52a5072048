"""Einsum, scans, ranks and the order of elements, against independent NumPy in float64."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from meganeura.errors import DTypeError, MeganeuraError, OptionError, ShapeError
from meganeura.ir import build
from meganeura.ir import composites as c
from meganeura.ir.dtypes import bool_
from meganeura.ir.graph import Node, topological
from tests.pure.ir.support import Array, agree, numbers, run

EQUATIONS: list[tuple[str, tuple[tuple[int, ...], ...]]] = [
    ("ij,jk", ((3, 5), (5, 17))),
    ("bij,bjk->bik", ((2, 3, 5), (2, 5, 7))),
    ("bhtd,bhsd->bhts", ((2, 3, 5, 4), (2, 3, 7, 4))),
    ("bhts,bhsd->bthd", ((2, 3, 5, 7), (2, 3, 7, 4))),
    ("tbi,oi->obt", ((5, 2, 3), (7, 3))),
    ("ij->", ((3, 5),)),
    ("ij->j", ((3, 5),)),
    ("ba", ((3, 5),)),
    ("ii", ((4, 4),)),
    ("ii->i", ((5, 5),)),
    ("bii->ib", ((3, 4, 4),)),
    ("iji->j", ((4, 3, 4),)),
    ("iii->i", ((3, 3, 3),)),
    ("i,j->ij", ((3,), (5,))),
    ("i,i->", ((17,), (17,))),
    ("bi,bi->b", ((3, 5), (3, 5))),
    ("bi,bi->bi", ((3, 5), (3, 5))),
    ("ij,k->i", ((3, 5), (7,))),
    ("ijq,jkr->ik", ((3, 5, 2), (5, 4, 3))),
    ("ii,ij->j", ((3, 3), (3, 5))),
    ("ij,jk,kl->il", ((3, 5), (5, 4), (4, 2))),
    ("bi,bj,bk->ijk", ((3, 2), (3, 4), (3, 5))),
    ("a b , b -> a", ((3, 5), (5,))),
    (",i->i", ((), (5,))),
    ("abcd,cdef->fabe", ((2, 3, 4, 5), (4, 5, 2, 3))),
    ("ij,jk->ik", ((0, 3), (3, 2))),
    ("ij,jk->ik", ((2, 0), (0, 3))),
    ("zA,Ab->bz", ((1, 3), (3, 1))),
]


@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS, ids=str)
def test_einsum(equation: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    arrays = [numbers(s, i) for i, s in enumerate(shapes)]
    agree(lambda *n: c.einsum(equation, *n), lambda *a: np.einsum(equation, *a), *arrays)


def test_einsum_of_integers_is_exact() -> None:
    a = np.array([[2**24, 1], [3, -5]], np.int32)
    value = run(lambda a: c.einsum("ij,kj->ik", a, a), a)
    np.testing.assert_array_equal(value, np.einsum("ij,kj->ik", a, a))
    masks = run(
        lambda a, b: c.einsum("ij,jk->ik", a, b), np.ones((2, 3), bool), np.ones((3, 2), bool)
    )
    assert masks.tolist() == [[3, 3], [3, 3]]


def test_einsum_sums_by_one_matmul() -> None:
    q, k = build.input_("q", (2, 3, 5, 4)), build.input_("k", (2, 3, 7, 4))
    found = [n.op.name for n in topological([c.einsum("bhtd,bhsd->bhts", q, k)])]
    assert found.count("matmul") == 1
    assert {"mul", "sum"} & set(found) == set()


def text(error: MeganeuraError) -> list[str]:
    lines = str(error).splitlines()
    assert lines[1].startswith("  where:    test_")
    return [lines[0], *(line.split(":", 1)[1].strip() for line in lines[2:])]


BAD: list[tuple[str, tuple[tuple[int, ...], ...], list[str]]] = [
    (
        "ij,jk",
        ((3, 4),),
        ["einsum 'ij,jk': it names another number of operands", "2", "1"],
    ),
    (
        "ij,jk->ik",
        ((3, 4, 5), (5, 6)),
        ["einsum 'ij,jk->ik': the axes do not fit", "2 axes for 'ij'", "[3, 4, 5]"],
    ),
    (
        "ij,jk->ik",
        ((3, 4), (5, 6)),
        ["einsum 'ij,jk->ik': the letter 'j' has two sizes", "4", "5"],
    ),
    ("ii->i", ((3, 4),), ["einsum 'ii->i': the letter 'i' has two sizes", "3", "4"]),
    (
        "ij->iz",
        ((3, 4),),
        ["einsum 'ij->iz': the result", "letters of the operands, each once", "iz"],
    ),
    (
        "ij->ii",
        ((3, 4),),
        ["einsum 'ij->ii': the result", "letters of the operands, each once", "ii"],
    ),
    (
        "...i->i",
        ((3, 4),),
        ["einsum '...i->i': what is it?", 'letters, "," and one "->"', "..."],
    ),
    (
        "ij->i->j",
        ((3, 4),),
        ["einsum 'ij->i->j': what is it?", 'letters, "," and one "->"', "->"],
    ),
    (
        "ij->i,j",
        ((3, 4),),
        ["einsum 'ij->i,j': what is it?", 'letters, "," and one "->"', "i,j"],
    ),
]


@pytest.mark.parametrize(("equation", "shapes", "said"), BAD, ids=[b[0] for b in BAD])
def test_bad_equations(equation: str, shapes: tuple[tuple[int, ...], ...], said: list[str]) -> None:
    with pytest.raises(ShapeError) as error:
        c.einsum(equation, *(build.input_(f"x{i}", s) for i, s in enumerate(shapes)))
    hint = 'name each axis by a letter, as in mg.einsum("bij,bjk->bik", x, y)'
    assert text(error.value) == [*said, hint]


def cumulated(x: Array, axis: int, exclusive: bool, reverse: bool) -> Array:
    out = np.moveaxis(np.zeros_like(x), axis, 0)
    moved = np.moveaxis(x, axis, 0)
    n = len(moved)
    for i in range(n):
        first, last = (i, n) if reverse else (0, i + 1)
        if exclusive:
            first, last = (first + 1, last) if reverse else (first, last - 1)
        out[i] = moved[first:last].sum(0)
    return np.moveaxis(out, 0, axis)


CUMSUMS = [((1,), 0), ((3, 5), 1), ((3, 5), 0), ((2, 3, 17), -2), ((64,), 0), ((65, 2), 0)]
CUMSUMS += [((2, 127), 1), ((3, 0), 1), ((0, 3), 1), ((4200,), 0)]


@pytest.mark.parametrize(("shape", "axis"), CUMSUMS, ids=str)
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_cumsum(shape: tuple[int, ...], axis: int, exclusive: bool, reverse: bool) -> None:
    x = numbers(shape) / max(shape)
    agree(
        lambda x: c.cumsum(x, axis, exclusive, reverse),
        lambda x: cumulated(x, axis, exclusive, reverse),
        x,
    )
    whole = np.random.default_rng(3).integers(-(2**20), 2**20, shape).astype(np.int32)
    np.testing.assert_array_equal(
        run(lambda x: c.cumsum(x, axis, exclusive, reverse), whole),
        cumulated(whole, axis, exclusive, reverse),
    )


def test_cumsum_of_bools_counts() -> None:
    assert run(lambda x: c.cumsum(x, 0), np.array([True, False, True])).tolist() == [1, 1, 2]


def test_the_work_of_cumsum_is_near_linear() -> None:
    def elements(n: int) -> int:
        nodes = topological([c.cumsum(build.input_("x", (n,)), 0)])
        return sum(n.size for n in nodes if n.op.name == "matmul")

    assert elements(64**2) <= 1.05 * 64**2
    assert elements(64**3) <= 1.05 * 64**3


def ranked(x: Array, k: int, axis: int) -> tuple[Array, Array]:
    order = np.argsort(-np.moveaxis(x, axis, -1), axis=-1, kind="stable")[..., :k]
    found = np.take_along_axis(np.moveaxis(x, axis, -1), order, -1)
    return np.moveaxis(found, -1, axis), np.moveaxis(order, -1, axis)


TOPKS = [((1,), 1, 0), ((5,), 5, 0), ((3, 17), 3, -1), ((17, 3), 4, 0), ((2, 5, 3), 2, 1)]
TOPKS += [((64,), 64, 0), ((2, 65), 3, 1), ((127, 2), 9, 0), ((0, 5), 2, 1), ((2, 200), 4, -1)]


@pytest.mark.parametrize(("shape", "k", "axis"), TOPKS, ids=str)
@pytest.mark.parametrize("kind", ["floats", "ties", "integers", "natural"])
def test_topk(shape: tuple[int, ...], k: int, axis: int, kind: str) -> None:
    x: Array = numbers(shape)
    if kind != "floats":
        x = np.floor(2 * x)
    if kind == "integers":
        x = x.astype(np.int32)
    if kind == "natural":
        x = np.abs(x).astype(np.uint32)
    values, indices = ranked(x.astype(np.float64), k, axis)
    np.testing.assert_array_equal(run(lambda x: c.topk(x, k, axis)[0], x), values)
    np.testing.assert_array_equal(run(lambda x: c.topk(x, k, axis)[1], x), indices)


@pytest.mark.parametrize("n", [6, 70])
def test_topk_of_infinities_names_each_element_once(n: int) -> None:
    x = np.full((n,), -np.inf)
    x[2], x[4] = np.inf, -1e30
    assert run(lambda x: c.topk(x, 4)[1], x).tolist() == [2, 4, 0, 1]
    assert run(lambda x: c.topk(x, 4)[0], x).tolist() == [np.inf, -1e30, -np.inf, -np.inf]


def test_what_topk_does_not_take() -> None:
    x = build.input_("x", (3, 5))
    for k in (0, 6):
        with pytest.raises(ShapeError) as error:
            c.topk(x, k)
        assert text(error.value) == ["topk of [3, 5] along axis 1", "1 <= k <= 5", f"k={k}"]
    with pytest.raises(ShapeError) as nothing:
        c.topk(build.input_("x", (3, 0)), 1)
    assert text(nothing.value) == [
        "topk of [3, 0] along axis 1",
        "at least one element along the axis",
        "k=1",
    ]
    with pytest.raises(ShapeError, match="axis 2 is out of range"):
        c.topk(x, 1, 2)
    with pytest.raises(DTypeError) as masks:
        c.topk(build.input_("m", (3,), bool_), 1)
    assert text(masks.value) == ["topk does not take bool", "numbers", "bool"]


@pytest.mark.parametrize("shape", [(), (1,), (5,), (3, 5), (2, 3, 17), (0, 3)], ids=str)
def test_flip_and_roll(shape: tuple[int, ...]) -> None:
    x = numbers(shape)
    agree(c.flip, np.flip, x)
    agree(lambda x: c.roll(x, 3), lambda x: np.roll(x, 3), x)
    for axis in range(-len(shape), len(shape)):
        agree(lambda x, a=axis: c.flip(x, a), lambda x, a=axis: np.flip(x, a), x)
        for shift in (0, 1, -2, 7):
            agree(
                lambda x, a=axis, s=shift: c.roll(x, s, a),
                lambda x, a=axis, s=shift: np.roll(x, s, a),
                x,
            )


def test_roll_of_several_axes() -> None:
    x = numbers((3, 4, 5))
    for shift, axes in [((1, -2), (0, 2)), (2, (0, 1)), ((1, 1), (1, 1))]:
        agree(
            lambda x, s=shift, a=axes: c.roll(x, s, a),
            lambda x, s=shift, a=axes: np.roll(x, s, a),
            x,
        )
    agree(lambda x: c.flip(x, (0, 2)), lambda x: np.flip(x, (0, 2)), x)
    with pytest.raises(ShapeError) as error:
        c.roll(build.input_("x", (3, 4)), (1, 2, 3), (0, 1))
    assert text(error.value) == [
        "roll takes one shift for each axis",
        "2 shifts for the axes (0, 1)",
        "(1, 2, 3)",
    ]


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (5, 3), (2, 4, 4), (0, 3)], ids=str)
def test_triangles(shape: tuple[int, ...]) -> None:
    for k, name in itertools.product((-2, -1, 0, 1, 9), ("tril", "triu")):
        mine, numpys = getattr(c, name), getattr(np, name)
        for x in (numbers(shape), np.ones(shape, np.int32), np.ones(shape, bool)):
            np.testing.assert_array_equal(
                run(lambda x, f=mine, k=k: f(x, k), x), numpys(x, k), err_msg=f"{name} {k}"
            )
    with pytest.raises(ShapeError) as error:
        c.triu(build.input_("x", (3,)))
    assert text(error.value) == ["triu of [3]", "[..., M, N]", "[3]"]


@pytest.mark.parametrize(
    "shapes",
    [((3, 1), (5,), ()), ((), (3, 5), (5,)), ((2, 1, 4), (3, 1), (4,)), ((1,), (0,), (1,))],
    ids=str,
)
def test_where_broadcasts_all_three(shapes: Any) -> None:
    a, b, d = (numbers(s, i) for i, s in enumerate(shapes))
    agree(build.where, lambda a, b, d: np.where(a != 0, b, d), np.floor(a), b, d)
    agree(build.where, np.where, a > 0, b, d)


def turned(x: Array, positions: Array, base: float, interleaved: bool) -> Array:
    """Pairs as complex numbers, multiplied by a unit that turns with the position."""
    half = x.shape[-1] // 2
    angle = positions[..., None] * base ** (-2.0 * np.arange(half) / x.shape[-1])
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])
    z = (a + 1j * b) * np.exp(1j * angle)
    if interleaved:
        return np.stack([z.real, z.imag], -1).reshape(x.shape)
    return np.concatenate([z.real, z.imag], -1)


@pytest.mark.parametrize("shape", [(1, 2), (5, 4), (2, 3, 17, 6), (0, 4), (2, 127, 16)], ids=str)
@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary_embedding(shape: tuple[int, ...], interleaved: bool) -> None:
    x, steps = numbers(shape), np.arange(shape[-2])
    for base in (10000.0, 500.0):
        agree(
            lambda x, b=base: c.rotary_embedding(x, None, b, interleaved),
            lambda x, b=base: turned(x, steps, b, interleaved),
            x,
        )
    for first in (0, 7, 65536 - shape[-2]):
        agree(
            lambda x, p: c.rotary_embedding(x, p, interleaved=interleaved),
            lambda x, p: turned(x, p, 10000.0, interleaved),
            x,
            (steps + first).astype(np.int32),
        )


def test_rotary_embedding_at_a_position_of_each_row() -> None:
    x, at = numbers((2, 3, 5, 4)), np.arange(10).reshape(2, 1, 5).astype(np.int32) * 11
    agree(c.rotary_embedding, lambda x, p: turned(x, p, 10000.0, False), x, at)


def test_what_rotary_embedding_does_not_take() -> None:
    with pytest.raises(ShapeError) as odd:
        c.rotary_embedding(build.input_("x", (4, 5)))
    assert text(odd.value) == [
        "rotary_embedding of [4, 5]",
        "[..., T, D] with an even D",
        "[4, 5]",
    ]
    x = build.input_("x", (4, 6))
    with pytest.raises(ShapeError) as places:
        c.rotary_embedding(x, build.input_("p", (3,)))
    assert text(places.value) == [
        "rotary_embedding of [4, 6] at positions [3]",
        "positions that broadcast to [4]",
        "[3]",
    ]
    with pytest.raises(OptionError) as base:
        c.rotary_embedding(x, base=0.0)
    assert text(base.value) == ["rotary_embedding's base is positive", "base > 0", "base=0.0"]


def test_rotary_scores_depend_on_the_distance_alone() -> None:
    def score(x: Node, y: Node) -> Node:
        return c.einsum("d,d->", x, y)

    q, k = numbers((1, 8), 1), numbers((1, 8), 2)
    scores = [
        run(
            lambda q, k, p=p: score(
                build.reshape(c.rotary_embedding(q, np.array([p])), (8,)),
                build.reshape(c.rotary_embedding(k, np.array([p + 5])), (8,)),
            ),
            q,
            k,
        )
        for p in (0, 3, 1000)
    ]
    np.testing.assert_allclose(scores, scores[0], rtol=1e-6)
