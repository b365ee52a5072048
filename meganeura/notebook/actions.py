"""What each command of the magics does, once its line is understood."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from meganeura.errors import MagicError, MeganeuraError
from meganeura.notebook import charts, doctor
from meganeura.notebook.cells import run_body
from meganeura.notebook.commands import listing, nearest
from meganeura.notebook.completion import Names
from meganeura.notebook.examples import EXAMPLES, list_text
from meganeura.notebook.explain import explain, explainable
from meganeura.notebook.formatters import Lines, Sheet, chart_bundle, program_bundle
from meganeura.notebook.parsing import Call
from meganeura.notebook.progress import Line, LiveRun
from meganeura.notebook.widgets import Benches
from meganeura.plan import Options
from meganeura.profile.measure import profile
from meganeura.profile.profile import size
from meganeura.runtime.adapters import DeviceInfo, devices
from meganeura.runtime.program import Program
from meganeura.target import Target
from meganeura.tensor import Tensor
from meganeura.train.loop import latest_step, train
from meganeura.train.optim import SGD, Adam, AdamW, Optimizer
from meganeura.train.progress import ProgressLine
from meganeura.train.schedules import Cosine, Linear


@dataclass
class Context:
    """Where the commands run: the shell, and the workbenches of its programs."""

    shell: InteractiveShell
    benches: Benches
    runs: int = 0

    def programs(self) -> dict[str, Program]:
        """The programs in the user's namespace, in the order in which they were bound."""
        return {
            name: value
            for name, value in self.shell.user_ns.items()
            if isinstance(value, Program) and not name.startswith("_")
        }

    @property
    def replaces(self) -> bool:
        """Whether an output can be replaced: in a notebook, not in a terminal."""
        return hasattr(self.shell, "kernel")

    def bind(self, name: str | None, value: Any) -> None:
        """Binds a result to the name that the user asked for, and to no other."""
        if name is not None:
            self.shell.user_ns[name] = value

    def show(self, program: Any, slot: str, again: bool = False) -> None:
        """Displays the live workbench of a program; `again` replaces what the slot shows."""
        if again and not self.replaces:
            return
        bundle = program_bundle(program, self.benches)
        self.publish(bundle, transient={"display_id": slot}, update=again)

    def publish(self, bundle: dict[str, Any], **options: Any) -> None:
        """Displays a bundle below the cell, before its result."""
        publisher: Any = self.shell.display_pub
        publisher.publish(bundle, **options)

    def names(self) -> Names:
        """What the completion offers."""
        programs = self.programs()
        return Names(
            programs=tuple(programs),
            outputs={
                name: tuple(output for output, _ in program.graph.outputs)
                for name, program in programs.items()
            },
            explainable=tuple(
                dict.fromkeys(
                    name for program in programs.values() for name in explainable(program)
                )
            ),
            rules=rule_names(),
        )


def rule_names() -> tuple[str, ...]:
    """The names of all rewrite rules."""
    from meganeura.rewrite import rules

    table: Any = getattr(rules, "RULES", ())
    return tuple(rule.name for rule in table)


def find_program(context: Context, call: Call) -> Program:
    """The program that a line names; MagicError with the nearest name when there is none."""
    name: str = call["program"]
    found = context.shell.user_ns.get(name)
    if isinstance(found, Program):
        return found
    known = list(context.programs())
    near = nearest(name, known) or (known[-1] if known else None)
    if found is not None:
        what = f"{name} is not a program"
        got = f"{name}, a {type(found).__name__}"
    else:
        what, got = f"There is no program called {name}", name
    raise MagicError(
        what,
        expected=listing(known) if known else "the name of a compiled program; there is none yet",
        got=got,
        hint=near or f"compile it first: %%meganeura compile -o {name}",
        origin=call.place("program"),
    )


def compile_cell(context: Context, call: Call, body: str) -> Any:
    """Runs the body, and compiles the tensors of its last line."""
    import meganeura as mg

    outputs = run_body(context.shell, body)
    if not are_tensors(outputs):
        raise MagicError(
            "The cell ends without tensors",
            expected="a last line that is one tensor, several, or a dict of them",
            got=got(outputs, body),
            hint='end the cell with: loss.named("loss"), logits.named("logits")',
            origin=call.line.at(0, len(call.line.text)),
        )
    options = Options(
        rewrite=not call["no_rewrite"],
        fuse=not call["no_fuse"],
        alias=not call["no_alias"],
        trusted=call["trusted"],
        rules_off=call["rules_off"] or frozenset(),
    )
    name = call["name"] or call["output"] or "program"
    program = mg.compile(outputs, name=name, device=call["device"], options=options)
    context.bind(call["output"], program)
    return program


def are_tensors(value: Any) -> bool:
    """Whether a value is a tensor, several, or tensors by name."""
    if isinstance(value, Tensor):
        return True
    items = list(value.values()) if isinstance(value, Mapping) else value
    return (
        isinstance(items, list | tuple)
        and bool(items)
        and all(isinstance(item, Tensor) for item in items)
    )


def got(value: Any, body: str) -> str:
    """What a cell's last line gave, in a word."""
    if value is None:
        return "nothing" if body.strip() else "an empty cell"
    if isinstance(value, list | tuple | dict):
        inside = list(value.values()) if isinstance(value, dict) else list(value)
        kinds = dict.fromkeys(type(item).__name__ for item in inside)
        return f"a {type(value).__name__} of {', '.join(kinds) or 'nothing'}"
    return f"{type(value).__name__}"


def optimizer_of(call: Call) -> Optimizer:
    """The optimiser that a train line asks for."""
    kind: str = call["optimizer"]
    takes = {"sgd": ("momentum", "weight_decay"), "adam": ("weight_decay",)}
    allowed = takes.get(kind, ("weight_decay",))
    for key in ("momentum", "weight_decay"):
        if call[key] is not None and key not in allowed:
            flag = f"--{key.replace('_', '-')}"
            raise MagicError(
                f"{kind} has no {flag}",
                expected=" or ".join(f"--{name.replace('_', '-')}" for name in allowed),
                got=f"{flag} {call[key]:g}",
                hint="--optimizer sgd",
                origin=call.place(key),
            )
    settings: dict[str, Any] = {key: call[key] for key in allowed if call[key] is not None}
    rate: float = call["lr"] if call["lr"] is not None else 1e-3
    schedules: Mapping[str, Callable[[], Any]] = {
        "constant": lambda: rate,
        "cosine": lambda: Cosine(rate, call["steps"]),
        "linear": lambda: Linear(rate, call["steps"]),
    }
    classes: Mapping[str, Callable[..., Optimizer]] = {"sgd": SGD, "adam": Adam, "adamw": AdamW}
    return classes[kind](lr=schedules[call["schedule"]](), **settings)


def train_cell(context: Context, call: Call, body: str) -> Any:
    """Runs the body, and trains a program on the batches that its last line gives.

    Where training ends with an error, what was reached is bound all the same.
    """
    program = find_program(context, call)
    optimizer = optimizer_of(call)
    data = run_body(context.shell, body)
    if data is None:
        raise MagicError(
            "The cell ends without data",
            expected="a last line that gives batches",
            got=got(data, body),
            hint="mg.data.batches(digits.train, 128, seed=0)",
            origin=call.line.at(0, len(call.line.text)),
        )
    context.runs += 1
    live = LiveRun(context.benches, context.show, call["output"] or f"run {context.runs}")
    shown = call["view"] == "live" and not call["quiet"]
    run = None
    line = Line(context.shell.display_pub) if context.replaces else ProgressLine()
    try:
        run = train(
            program,
            data=data,
            loss=call["loss"],
            optimizer=optimizer,
            steps=call["steps"],
            seed=call["seed"],
            clip_norm=call["clip_norm"],
            progress=False,
            callbacks=[*([live] if shown else []), *([] if call["quiet"] else [line])],
        )
    except MeganeuraError as error:
        run = getattr(error, "run", None)
        raise
    finally:
        if run is not None:
            context.bind(call["output"], run)
            if shown:
                live.close(run)
    return run


def profile_line(context: Context, call: Call, body: str) -> Any:
    """Times a program, and draws the roofline."""
    program = find_program(context, call)
    result = profile(program, steps=call["steps"])
    timed: Any = program
    latest = latest_step(program)
    if result.kind != program.kind and latest is not None:
        timed = latest[0]
    timed.timings = {kernel.name: kernel.times_us.tolist() for kernel in result.kernels}
    context.benches.refresh(timed)
    context.bind(call["output"], result)
    if not call["quiet"]:
        context.publish(chart_bundle(charts.roofline(result)))
    return result


def devices_line(context: Context, call: Call, body: str) -> Any:
    """A table of all adapters."""
    return devices_sheet(devices())


def devices_sheet(found: tuple[DeviceInfo, ...]) -> Sheet:
    """Every adapter: what it is and can do, the chosen one, and why the rest is not used."""
    rows = tuple(
        ("used" if info.default else "", info.name, *limits(info.target), info.why_not or "")
        for info in found
    )
    chosen = next((info.name for info in found if info.default), "NumPy")
    columns = ("", "device", "kind", "driver", "workgroup", "binding", "features", "why not")
    return Sheet("Devices", columns, rows, f"Programs run on {chosen} unless told otherwise.")


def limits(target: Target | None) -> tuple[str, str, str, str, str]:
    """Kind, driver, workgroup memory, largest binding and features, where they mean anything."""
    if target is None:
        return ("", "", "", "", "")
    features = ", ".join(sorted(target.features))
    if target.kind == "numpy":
        return (target.kind, target.driver, "", "", features)
    memory, binding = size(target.workgroup_memory), size(target.storage_binding)
    return (target.kind, target.driver, memory, binding, features)


def doctor_line(context: Context, call: Call, body: str) -> Any:
    """The usual troubles, each with the line to type."""
    return Lines(doctor.report(doctor.diagnose(doctor.look(adapters))))


def adapters() -> list[tuple[str, str]]:
    """Name and kind of every usable adapter; raises what the driver said where there is none."""
    found = devices()
    usable = [info.target for info in found if info.target is not None]
    real = [(target.name, target.kind) for target in usable if target.kind != "numpy"]
    problem = found[-1].name.partition("no adapter: ")[2]
    if problem and not real:
        raise OSError(problem)
    return [(name, str(kind)) for name, kind in real]


def explain_line(context: Context, call: Call, body: str) -> Any:
    """A kernel or a tensor in words and numbers."""
    if call["program"] is not None:
        candidates = {call["program"]: find_program(context, call)}
    else:
        candidates = context.programs()
    name: str = call["name"]
    for program in reversed(candidates.values()):
        text = explain(program, name)
        if text is not None:
            return Lines(text)
    known = [item for program in candidates.values() for item in explainable(program)]
    raise MagicError(
        f"Nothing is called {name}",
        expected=listing(list(dict.fromkeys(known))[:12]) or "a kernel or a tensor of a program",
        got=name,
        hint=nearest(name, known) or "compile a program first: %%meganeura compile -o mlp",
        origin=call.place("name"),
    )


def examples_line(context: Context, call: Call, body: str) -> Any:
    """The list of examples, or one of them into the next cell."""
    name: str | None = call["example"]
    if name is None:
        return Lines(list_text())
    if name not in EXAMPLES:
        raise MagicError(
            f"There is no example called {name}",
            expected=listing(list(EXAMPLES)),
            got=name,
            hint=f"%meganeura examples {nearest(name, EXAMPLES) or next(iter(EXAMPLES))}",
            origin=call.place("example"),
        )
    context.shell.set_next_input(EXAMPLES[name].text)
    return None


ACTIONS: Mapping[str, Callable[[Context, Call, str], Any]] = {
    "compile": compile_cell,
    "train": train_cell,
    "profile": profile_line,
    "devices": devices_line,
    "doctor": doctor_line,
    "explain": explain_line,
    "examples": examples_line,
}
