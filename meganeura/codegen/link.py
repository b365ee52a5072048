"""Linking: constants, bindings, helpers, hooks and a skeleton become one WGSL module.

A skeleton is a `.wgsl` file with one directive, `// @unroll i < COUNT` ... `// @end`, which repeats
its lines with `$i` replaced: loops
that index registers must be written out (a register array indexed by a loop variable goes to memory
on some drivers).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources

from meganeura.codegen.expr import Line

_UNROLL = re.compile(r"\s*// @unroll (\w+) < (\w+)\s*")


@lru_cache(maxsize=32)
def skeleton(name: str) -> tuple[str, ...]:
    """The lines of a skeleton file."""
    text = resources.files("meganeura.codegen").joinpath("wgsl", f"{name}.wgsl").read_text("utf-8")
    return tuple(text.rstrip().split("\n"))


def unroll(lines: tuple[str, ...], counts: Mapping[str, int]) -> list[str]:
    """The lines with every `@unroll` written out.

    >>> unroll(("// @unroll i < N", "x$i = $iu;", "// @end"), {"N": 2})
    ['x0 = 0u;', 'x1 = 1u;']
    """
    result: list[str] = []
    at = 0
    while at < len(lines):
        match = _UNROLL.fullmatch(lines[at])
        if match is None:
            result.append(lines[at])
            at += 1
            continue
        end = _end(lines, at)
        name, count = match.group(1), counts[match.group(2)]
        body = lines[at + 1 : end]
        for i in range(count):
            result += unroll(tuple(line.replace(f"${name}", str(i)) for line in body), counts)
        at = end + 1
    return result


def _end(lines: tuple[str, ...], start: int) -> int:
    depth = 0
    for at in range(start, len(lines)):
        if _UNROLL.fullmatch(lines[at]):
            depth += 1
        elif lines[at].strip() == "// @end":
            depth -= 1
            if depth == 0:
                return at
    raise ValueError("@unroll without @end")


def constants(values: Mapping[str, int | bool]) -> list[Line]:
    """Constants in WGSL, in order."""
    return [
        Line(f"const {name} = {str(value).lower() if isinstance(value, bool) else f'{value}u'};")
        for name, value in values.items()
    ]
