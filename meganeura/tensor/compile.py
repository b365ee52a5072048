"""`mg.compile`: tensors become a program on a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from meganeura.compiler import compile_program
from meganeura.errors import NameClashError, OptionError
from meganeura.ir.graph import Graph, Node
from meganeura.ir.source import here
from meganeura.plan import Options
from meganeura.runtime.device import Device
from meganeura.runtime.program import Program
from meganeura.tensor.tensor import Tensor

Outputs = Tensor | Sequence[Tensor] | Mapping[str, Tensor]


def compile(
    outputs: Outputs,
    *,
    name: str = "program",
    device: str | Device | None = None,
    options: Options | None = None,
    **switches: Any,
) -> Program:
    """Compiles tensors to a program that can be called, trained and looked at.

    `outputs` is a tensor, several, or tensors by name; several without names of their own are called `out0`, `out1`.
    `device` is None (the best there is), "gpu", "numpy" or part of an adapter's name. Switches are fields of `Options`,
    such as `fuse=False`. Raises OptionError, NameClashError, TargetError or DeviceError.

    >>> import meganeura as mg
    >>> double = mg.compile(mg.input("x", (2,)) * 2, device="numpy")
    >>> double(x=[1.0, 2.0]).tolist()
    [2.0, 4.0]
    """
    known = {f.name for f in fields(Options)}
    for switch in switches:
        if switch not in known:
            raise OptionError(
                f"there is no option {switch!r}", expected="one of: " + ", ".join(sorted(known)), got=repr(switch)
            )
    base = options or Options()
    chosen = Options(**{**{f.name: getattr(base, f.name) for f in fields(Options)}, **switches})
    return compile_program(Graph(named(outputs)), name=name, options=chosen, device=device)


def named(outputs: Outputs) -> tuple[tuple[str, Node], ...]:
    """Outputs with a name each: given, their own, or by number."""
    if isinstance(outputs, Tensor):
        return ((outputs.node.origin.name or "out", outputs.node),)
    if isinstance(outputs, Mapping):
        pairs = [(str(k), v) for k, v in outputs.items()]
    elif isinstance(outputs, Sequence) and not isinstance(outputs, str):
        pairs = [(_own_name(t, i), t) for i, t in enumerate(outputs)]
    else:
        raise _not_tensors(type(outputs).__name__)
    if not pairs:
        raise _not_tensors("none")
    seen: dict[str, Node] = {}
    for key, tensor in pairs:
        if not isinstance(tensor, Tensor):
            raise _not_tensors(type(tensor).__name__)
        if key in seen:
            raise NameClashError(
                f"two outputs are called {key!r}",
                expected="a name for each",
                got=key,
                hint='name them, as in mg.compile({"loss": loss, "logits": logits})',
                origin=tensor.node.origin,
            )
        seen[key] = tensor.node
    return tuple(seen.items())


def _own_name(tensor: Any, position: int) -> str:
    node = getattr(tensor, "node", None)
    return (node.origin.name if node is not None else None) or f"out{position}"


def _not_tensors(got: str) -> OptionError:
    return OptionError(
        "nothing to compile",
        expected="a tensor, several tensors, or tensors by name",
        got=got,
        hint='mg.compile({"loss": loss, "logits": logits})',
        origin=here(),
    )
