"""Names of buffers in WGSL: the user's where they are words of the language, made ones otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterable

from meganeura.ir.graph import Node

RESERVED = frozenset(
    ["batch", "m", "n", "k", "m4", "n4", "row", "column", "part", "lane", "group", "state", "live", "element", "arm", "v", "value", "sum", "main", "store", "start", "reach", "down", "across", "load_a", "load_b", "store", "accumulate", "merge", "finish_row", "finish_element", "spot_a", "spot_b", "slice_a", "slice_b", "scratch", "State", "alias", "array", "atomic", "bool", "break", "case", "const", "const_assert", "continue", "continuing", "default", "diagnostic", "discard", "else", "enable", "false", "fn", "for", "if", "let", "loop", "mat2x2", "override", "ptr", "return", "sampler", "struct", "switch", "true", "var", "vec2", "vec3", "vec4", "while", "abs", "acos", "all", "any", "asin", "atan", "ceil", "clamp", "cos", "cosh", "cross", "degrees", "distance", "dot", "exp", "exp2", "floor", "fma", "fract", "length", "log", "log2", "max", "min", "mix", "modf", "normalize", "pow", "radians", "round", "select", "sign", "sin", "sinh", "smoothstep", "sqrt", "step", "tan", "tanh", "transpose", "trunc", "f16", "f32", "i32", "u32", "bitcast", "target", "texture", "storage", "workgroup", "private", "function", "uniform", "read", "write", "read_write", "binding", "builtin", "compute", "fragment", "vertex", "location", "size", "align", "active", "as", "auto", "class", "enum", "export", "extern", "final", "goto", "impl", "import", "in", "inout", "interface", "is", "let", "mod", "module", "move", "mut", "namespace", "new", "nil", "null", "of", "operator", "out", "package", "pass", "private", "protected", "public", "ref", "regardless", "require", "resource", "set", "shared", "signed", "static", "struct", "super", "template", "this", "thread", "throw", "trait", "try", "type", "typedef", "union", "unless", "unsafe", "use", "using", "virtual", "void", "volatile", "where", "with", "yield", "self", "mesh", "meta", "mesh", "from", "get", "filter", "final", "finally", "do", "debugger", "delete", "extends", "friend", "explicit", "demote", "handle", "instanceof", "lowp", "mediump", "highp", "noinline", "noexcept", "nointerpolation", "nullptr", "packed", "precise", "precision", "premerge", "regardless", "register", "rowmajor", "sample", "shared", "sizeof", "smooth", "snorm", "subroutine", "unorm", "varying"]
)


class Names:
    """One name a buffer, given in order of first use."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._names: dict[Node, str] = {}
        self._taken = set(taken)

    def of(self, node: Node) -> str:
        """The name of a node's buffer."""
        if node not in self._names:
            self._names[node] = self._new(node)
        return self._names[node]

    def _new(self, node: Node) -> str:
        base = re.sub(r"\W", "_", node.name or "", flags=re.ASCII).strip("_")
        if not base or not base[0].isalpha() or len(base) > 40:
            base = "t"
        if (
            base in RESERVED
            or base.startswith("mg_")
            or re.fullmatch(r"(v|next_[ab]|sum_.*|[ab])\d*", base)
        ):
            base += "_"
        name, count = base, 0
        while name in self._taken or name in RESERVED or name == "t" or name.endswith("__"):
            name, count = f"{base.rstrip('_')}_{count}" if base != "t" else f"t{count}", count + 1
        self._taken.add(name)
        return name
