"""A kernel or a named tensor in words and numbers, for `%meganeura explain`."""

from __future__ import annotations

import math

from meganeura.codegen.kernel import Kernel
from meganeura.ir.graph import Node
from meganeura.profile.profile import quantity, size
from meganeura.runtime.program import Program
from meganeura.train.loop import latest_step


def parts(program: Program) -> tuple[Program, ...]:
    """The program, and its training step where it was trained."""
    latest = latest_step(program)
    return (program,) if latest is None else (program, latest[0])


def explainable(program: Program) -> tuple[str, ...]:
    """The names that `explain` knows: kernels, then tensors."""
    kernels = [kernel.name for part in parts(program) for kernel in part.kernels]
    tensors = [str(node.name) for node in program.graph.nodes if node.name is not None]
    outputs = [name for name, _ in program.graph.outputs]
    return tuple(dict.fromkeys([*kernels, *outputs, *tensors]))


def explain(program: Program, name: str) -> str | None:
    """What a kernel or a tensor of a program is; None where the name is not known."""
    texts = [
        explain_kernel(part, kernel)
        for part in parts(program)
        for kernel in part.kernels
        if kernel.name == name
    ]
    named = {str(node.name): node for node in program.graph.nodes if node.name is not None}
    named.update(program.graph.outputs)
    if name in named:
        texts.append(explain_node(program, name, named[name]))
    return "\n\n".join(texts) or None


def explain_kernel(program: Program, kernel: Kernel) -> str:
    """One launch: what it computes, from which lines, what it moves, how it is cut."""
    moved = kernel.bytes_read + kernel.bytes_written
    lines = [
        f"{kernel.name} of {program.name}, {program.kind}: {kernel.label} ({kernel.phase})",
        f"  It does {counted(len(kernel.nodes), 'node')} in one launch of "
        f"{counted(math.prod(kernel.grid), 'workgroup')} of "
        f"{counted(kernel.workgroup, 'invocation')}, tile {kernel.tile.describe()}.",
        f"  It reads {size(kernel.bytes_read)} and writes {size(kernel.bytes_written)}; node by "
        f"node it would move {size(unfused(kernel))}.",
        f"  Its work is {quantity(kernel.flops, 'flop')}"
        + (f", {kernel.flops / moved:.3g} a byte." if moved else "."),
    ]
    sources = dict.fromkeys(
        node.origin.source.where() for node in kernel.nodes if node.origin.source is not None
    )
    lines += [f"  From {where}" for where in sources]
    times = program.timings.get(kernel.name)
    if times:
        middle = sorted(times)[len(times) // 2]
        lines.append(f"  Measured: {middle:.3g} µs, the median of {counted(len(times), 'step')}.")
    return "\n".join(lines)


def unfused(kernel: Kernel) -> int:
    """Bytes that the kernel's nodes would move with one launch each."""
    return sum(
        node.nbytes + sum(child.nbytes for child in dict.fromkeys(node.inputs))
        for node in kernel.nodes
        if node.op.kind not in ("leaf", "view")
    )


def explain_node(program: Program, name: str, node: Node) -> str:
    """One tensor: shape, bytes, where it was written, which kernel computes it."""
    shape = " × ".join(str(extent) for extent in node.shape) or "scalar"
    lines = [f"{name} of {program.name}: {node.op.name}, {shape} {node.dtype}, {size(node.nbytes)}"]
    where = node.origin.where()
    if where is not None:
        lines.append(f"  Written in {where}")
    if node.origin.scope:
        lines.append(f"  In the scope {'.'.join(node.origin.scope)}")
    held = dict(program.plan.holders).get(name)
    makers = [
        kernel.name
        for kernel in program.kernels
        if held in kernel.nodes or any(part.name == name for part in kernel.nodes)
    ]
    if makers:
        lines.append(f"  Computed by {', '.join(makers)}.")
    if node.op.kind != "leaf":
        lines.append(f"  Its values: program.read({name!r}, ...) with the feeds.")
    return "\n".join(lines)


def counted(number: int, word: str) -> str:
    """A number and its word, in the plural where it is not one."""
    return f"{number:,} {word}" + ("" if number == 1 else "s")
