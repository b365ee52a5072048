"""What does not fit is said in whole: what, where, expected, got, what to try."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from meganeura.errors import DTypeError, MeganeuraError, ShapeError
from meganeura.ir import build
from meganeura.ir import composites as c
from meganeura.ir.dtypes import as_dtype, bool_, f16, f32, i32, u32
from meganeura.ir.graph import Node

X = build.input_("x", (128, 64))
Y = build.input_("y", (128,))
N = build.input_("n", (4,), i32)
U = build.input_("u", (4,), u32)
B = build.input_("b", (4,), bool_)
IMAGE = build.input_("image", (2, 3, 8, 8))
FILTERS = build.input_("filters", (4, 2, 3, 3))

CASES: dict[str, tuple[Callable[[], Any], type[MeganeuraError], list[str]]] = {
    "broadcast": (
        lambda: build.add(X, Y),
        ShapeError,
        [
            "shapes do not broadcast: [128, 64] and [128]",
            "  expected: equal sizes, or 1, on axis -1",
            "  got:      64 and 128",
            "  try:      reshape one operand, or add an axis with x[:, None]",
        ],
    ),
    "where": (
        lambda: build.where(B, X, X),
        ShapeError,
        [
            "shapes do not broadcast: [4] and [128, 64]",
            "  expected: equal sizes, or 1, on axis -1",
            "  got:      4 and 64",
            "  try:      reshape one operand, or add an axis with x[:, None]",
        ],
    ),
    "matmul": (
        lambda: build.matmul(X, X),
        ShapeError,
        [
            "matmul of [128, 64] and [128, 64]",
            "  expected: [..., m, k] by [..., k, n] with one k",
            "  got:      k of 64 and 128",
            "  try:      check the layer before, or transpose an operand with .T",
        ],
    ),
    "matmul of batches": (
        lambda: build.matmul(np.ones((2, 3, 4)), np.ones((5, 4, 3))),
        ShapeError,
        [
            "shapes do not broadcast: [2] and [5]",
            "  expected: equal sizes, or 1, on axis -1",
            "  got:      2 and 5",
            "  try:      reshape one operand, or add an axis with x[:, None]",
        ],
    ),
    "matmul of a scalar": (
        lambda: build.matmul(X, 2.0),
        ShapeError,
        [
            "matmul takes no scalars",
            "  expected: at least one axis each",
            "  got:      [128, 64] and []",
            "  try:      use * for a product by a number",
        ],
    ),
    "reshape": (
        lambda: build.reshape(X, (128, 63)),
        ShapeError,
        [
            "cannot reshape [128, 64] to [128, 63]",
            "  expected: 8192 elements",
            "  got:      8064 elements",
        ],
    ),
    "reshape with -1": (
        lambda: build.reshape(X, (-1, 100)),
        ShapeError,
        [
            "cannot reshape [128, 64] to [81, 100]",
            "  expected: 8192 elements",
            "  got:      8100 elements",
        ],
    ),
    "reshape with -1 twice": (
        lambda: build.reshape(X, (-1, -1)),
        ShapeError,
        [
            "cannot reshape [128, 64] to [-1, -1]",
            "  expected: sizes of at least 0, and -1 at most once",
            "  got:      [-1, -1]",
        ],
    ),
    "pad": (
        lambda: build.pad(X, (1,), (0,)),
        ShapeError,
        [
            "pad of [128, 64]",
            "  expected: two widths of at least 0 for each axis",
            "  got:      [(1, 0)]",
        ],
    ),
    "stride of three": (
        lambda: build.conv2d(IMAGE, FILTERS, stride=(1, 2, 3)),
        ShapeError,
        [
            "one number for both axes, or one each",
            "  expected: n or (n, m)",
            "  got:      (1, 2, 3)",
        ],
    ),
    "negative padding": (
        lambda: build.conv2d(IMAGE, FILTERS, padding=(1, -1)),
        ShapeError,
        [
            "padding is not negative, and of two axes",
            "  expected: n, (n, m) or ((top, bottom), (left, right))",
            "  got:      (1, -1)",
        ],
    ),
    "permute": (
        lambda: build.permute(X, (0, 2)),
        ShapeError,
        [
            "cannot permute [128, 64] by (0, 2)",
            "  expected: each of the axes 0 to 1 once",
            "  got:      (0, 2)",
        ],
    ),
    "transpose": (
        lambda: build.transpose(Y),
        ShapeError,
        ["transpose needs two axes", "  expected: [..., m, n]", "  got:      [128]"],
    ),
    "expand": (
        lambda: build.broadcast_to(X, (128, 65)),
        ShapeError,
        [
            "cannot expand [128, 64] to [128, 65]",
            "  expected: equal sizes, or 1",
            "  got:      [128, 64]",
        ],
    ),
    "axis": (
        lambda: build.mean(X, 2),
        ShapeError,
        [
            "axis 2 is out of range",
            "  expected: an axis from -2 to 1",
            "  got:      2",
            "  try:      the tensor has 2 axes",
        ],
    ),
    "axis named twice": (
        lambda: build.sum_(X, (1, -1)),
        ShapeError,
        ["an axis is named twice", "  expected: distinct axes", "  got:      (1, -1)"],
    ),
    "conv2d channels": (
        lambda: build.conv2d(IMAGE, FILTERS),
        ShapeError,
        [
            "conv2d of [2, 3, 8, 8] and [4, 2, 3, 3] in 1 groups",
            "  expected: 2 input channels, and output channels divisible by 1",
            "  got:      3 input and 4 output channels",
        ],
    ),
    "conv2d axes": (
        lambda: build.conv2d(X, FILTERS),
        ShapeError,
        [
            "conv2d takes images and filters of four axes",
            "  expected: [N, C, H, W] and [O, C/groups, KH, KW]",
            "  got:      [128, 64] and [4, 2, 3, 3]",
        ],
    ),
    "conv2d window": (
        lambda: build.conv2d(np.ones((1, 1, 2, 9)), np.ones((1, 1, 3, 3)), dilation=2, padding=1),
        ShapeError,
        [
            "the window is larger than the padded input",
            "  expected: at least [5, 5]",
            "  got:      [4, 11]",
            "  try:      add padding, or use a smaller window",
        ],
    ),
    "conv2d stride": (
        lambda: build.conv2d(IMAGE, FILTERS, stride=0),
        ShapeError,
        [
            "conv2d: stride, dilation and groups are at least 1",
            "  expected: >= 1",
            "  got:      stride 0, dilation 1, groups 1",
        ],
    ),
    "concat": (
        lambda: c.concat([X, Y]),
        ShapeError,
        [
            "concat: shapes differ beside the axis",
            "  expected: [128, 64]",
            "  got:      [128]",
            "  try:      only axis 0 may differ",
        ],
    ),
    "concat of nothing": (
        lambda: c.concat([]),
        ShapeError,
        ["concat needs at least one tensor", "  expected: one or more", "  got:      none"],
    ),
    "split": (
        lambda: c.split(X, 3),
        ShapeError,
        [
            "cannot split axis 0 of [128, 64] into 3",
            "  expected: sizes that add up to 128",
            "  got:      126",
        ],
    ),
    "stack axis": (
        lambda: c.stack([X, X], 3),
        ShapeError,
        ["axis 3 is out of range", "  expected: an axis from -3 to 2", "  got:      3"],
    ),
    "scatter_add": (
        lambda: build.scatter_add(X, N, 10),
        ShapeError,
        [
            "scatter_add: the updates do not match the index",
            "  expected: [4]",
            "  got:      [128]",
        ],
    ),
    "gather from nothing": (
        lambda: build.gather(build.constant(np.zeros((0, 3))), N),
        ShapeError,
        [
            "gather from an axis without elements",
            "  expected: at least one element on axis 0",
            "  got:      [0, 3]",
        ],
    ),
    "gather by floats": (
        lambda: build.gather(X, Y),
        DTypeError,
        [
            "gather does not take f32",
            "  expected: integer indices",
            "  got:      f32",
            "  try:      cast it, as in x.cast(mg.i32)",
        ],
    ),
    "integers of two kinds": (
        lambda: build.add(N, U),
        DTypeError,
        [
            "i32 and u32 do not mix",
            "  expected: two operands of one integer type",
            "  got:      i32 and u32",
            "  try:      cast one of them, as in x.cast(mg.i32)",
        ],
    ),
    "logic on numbers": (
        lambda: build.and_(N, B),
        DTypeError,
        [
            "and does not take i32",
            "  expected: bool tensors",
            "  got:      i32",
            "  try:      compare it, as in x != 0",
        ],
    ),
    "minus a bool": (
        lambda: build.neg(B),
        DTypeError,
        [
            "neg does not take bool",
            "  expected: a tensor of numbers",
            "  got:      bool",
            "  try:      cast it, as in x.cast(mg.f32)",
        ],
    ),
    "words": (
        lambda: build.constant(["a", "b"]),
        DTypeError,
        [
            "an array of <U1 cannot become a tensor",
            "  expected: an array of bool, integers or floats",
            "  got:      <U1",
            "  try:      convert it first, as in array.astype(np.float32)",
        ],
    ),
    "too large an integer": (
        lambda: build.constant([1, 2**31]),
        DTypeError,
        [
            "a number does not fit into i32",
            "  expected: integers from -2147483648 to 2147483647",
            "  got:      integers from 1 to 2147483648",
            "  try:      use floats, as in mg.constant(array, mg.f32)",
        ],
    ),
    "a negative unsigned integer": (
        lambda: build.add(U, -1),
        DTypeError,
        [
            "a number does not fit into u32",
            "  expected: integers from 0 to 4294967295",
            "  got:      -1",
            "  try:      use floats, as in mg.constant(array, mg.f32)",
        ],
    ),
    "no type": (
        lambda: as_dtype("float99"),
        DTypeError,
        [
            "not a data type of tensors",
            "  expected: one of f32, f16, i32, u32, bool",
            "  got:      'float99'",
            "  try:      use mg.f32, mg.i32 or another of them",
        ],
    ),
}

UNLOCATED = {"no type"}


@pytest.mark.parametrize("name", CASES)
def test_message(name: str) -> None:
    make, kind, expected = CASES[name]
    with pytest.raises(kind) as raised:
        make()
    lines = str(raised.value).splitlines()
    where = [line for line in lines if line.startswith("  where:")]
    assert [line for line in lines if line not in where] == expected
    if name not in UNLOCATED:
        assert len(where) == 1
        assert where[0].startswith("  where:    test_errors.py, line ")


def test_the_line_is_quoted() -> None:
    with pytest.raises(ShapeError) as raised:
        build.add(X, Y)
    assert raised.value.text().splitlines()[1].endswith(": build.add(X, Y)")


def test_types_by_name_and_from_numpy() -> None:
    assert as_dtype("f16") is f16
    assert as_dtype(np.int32) is i32
    assert as_dtype("int32") is i32
    assert (as_dtype(float), as_dtype(int), as_dtype(bool)) == (f32, i32, bool_)
    assert as_dtype(np.dtype("float32")) is f32
    assert as_dtype(u32) is u32
    assert isinstance(X, Node)
