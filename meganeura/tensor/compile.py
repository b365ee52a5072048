"""`mg.compile`: tensors become a program on a device."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from meganeura.compiler import compile_program
from meganeura.errors import OptionError
from meganeura.plan import Options
from meganeura.runtime.device import Device
from meganeura.runtime.program import Program
from meganeura.tensor.outputs import Outputs, graph_of


def compile(
    outputs: Outputs,
    *,
    name: str = "program",
    device: str | Device | None = None,
    options: Options | None = None,
    **switches: Any,
) -> Program:
    """Compiles tensors to a program that can be called, trained and looked at.

    `outputs` is a tensor, several, or tensors by name; several without names of their own are
    called `out0`, `out1`. `device` is None (the best there is), "gpu", "numpy" or part of an
    adapter's name. Switches are fields of `Options`, such as `fuse=False`. Raises OptionError,
    NameClashError, TargetError or DeviceError.

    >>> import meganeura as mg
    >>> double = mg.compile(mg.input("x", (2,)) * 2, device="numpy")
    >>> double(x=[1.0, 2.0]).tolist()
    [2.0, 4.0]
    """
    known = {f.name for f in fields(Options)}
    for switch in switches:
        if switch not in known:
            raise OptionError(
                f"there is no option {switch!r}",
                expected="one of: " + ", ".join(sorted(known)),
                got=repr(switch),
            )
    base = options or Options()
    chosen = Options(**{**{f.name: getattr(base, f.name) for f in fields(Options)}, **switches})
    return compile_program(graph_of(outputs), name=name, options=chosen, device=device)
