"""The text of a rule as people write it: `log(a / b) = log(a) - log(b)`, read off its function."""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Mapping
from copy import deepcopy
from functools import lru_cache
from types import FunctionType

from meganeura.ir import build

INFIX: Mapping[str, type[ast.operator]] = {
    "add": ast.Add,
    "sub": ast.Sub,
    "mul": ast.Mult,
    "div": ast.Div,
    "matmul": ast.MatMult,
    "pow_": ast.Pow,
    "_pow": ast.Pow,
    "and_": ast.BitAnd,
    "or_": ast.BitOr,
}
PREFIX: Mapping[str, type[ast.unaryop]] = {"neg": ast.USub, "not_": ast.Invert}
COMPARISONS: Mapping[str, type[ast.cmpop]] = {
    "lt": ast.Lt,
    "le": ast.LtE,
    "gt": ast.Gt,
    "ge": ast.GtE,
    "eq": ast.Eq,
    "ne": ast.NotEq,
}
WORDS: Mapping[str, str] = {
    "broadcast_to": "expand",
    "maximum": "max",
    "minimum": "min",
    "abs_": "abs",
    "sum_": "sum",
    "max_": "reduce_max",
    "min_": "reduce_min",
    "slice_": "slice",
}


class _Readable(ast.NodeTransformer):
    """Calls of the op API as operators, locals as what they stand for."""

    def __init__(self, names: Mapping[str, ast.expr]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.names.get(node.id, node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        call = self.generic_visit(node)
        assert isinstance(call, ast.Call)
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        if name in ("_all", "_full"):
            return call.args[1]
        if name in ("tuple", "sorted"):
            return ast.Name("…")
        return self._operator(name, call)

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        return ast.Name("…")

    def visit_Tuple(self, node: ast.Tuple) -> ast.expr:
        starred = any(isinstance(part, ast.Starred) for part in node.elts)
        return ast.Name("…") if starred else super().generic_visit(node)  # type: ignore[return-value]

    def visit_Starred(self, node: ast.Starred) -> ast.expr:
        return ast.Name("…")

    def _operator(self, name: str, call: ast.Call) -> ast.expr:
        if name in INFIX:
            return ast.BinOp(call.args[0], INFIX[name](), call.args[1])
        if name in PREFIX:
            return ast.UnaryOp(PREFIX[name](), call.args[0])
        if name in COMPARISONS:
            return ast.Compare(call.args[0], [COMPARISONS[name]()], [call.args[1]])
        if name in WORDS:
            call.func = ast.Name(WORDS[name])
        return call


def equation_text(function: FunctionType) -> str:
    """Both sides of a rule's function, with the equals sign between them.

    >>> from meganeura.rewrite.rules.powers import log_of_quotient
    >>> equation_text(log_of_quotient.function)
    'log(a / b) = log(a) - log(b)'
    """
    code = function.__code__
    # A copy, because reading it rewrites it.
    definition = deepcopy(_definitions(code.co_filename)[code.co_firstlineno])
    names = _closure(function)
    sides: ast.expr | None = None
    for statement in definition.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            if _builds(statement.value):
                value = _Readable(names).visit(statement.value)
                names = {**names, statement.targets[0].id: value}
        elif isinstance(statement, ast.Return) and statement.value is not None:
            sides = (
                statement.value.body if isinstance(statement.value, ast.IfExp) else statement.value
            )
    assert isinstance(sides, ast.Tuple)
    left, right = (ast.unparse(_Readable(names).visit(side)) for side in sides.elts)
    return f"{left} = {right}"


@lru_cache(maxsize=32)
def _definitions(file: str) -> dict[int, ast.FunctionDef]:
    """The functions of a file, by the line of their first decorator or their own."""
    tree = ast.parse("".join(linecache.getlines(file)))
    outer = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    inner = [node for f in outer for node in f.body if isinstance(node, ast.FunctionDef)]
    found = [*outer, *inner]
    return {(f.decorator_list[0] if f.decorator_list else f).lineno: f for f in found}


def _builds(value: ast.expr) -> bool:
    """True for what makes a node: such a local is shown as what it stands for."""
    name = value.func if isinstance(value, ast.Call) else None
    return isinstance(name, ast.Name) and hasattr(build, name.id)


def _closure(function: FunctionType) -> dict[str, ast.expr]:
    """The functions that a rule made by another function stands on, under their own names."""
    found = inspect.getclosurevars(function).nonlocals
    return {name: ast.Name(value.__name__) for name, value in found.items() if callable(value)}
