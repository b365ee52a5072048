"""The commands of the magics as a table, and their help.

One table serves the parser, `--help`, the completion and the errors.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["flag", "text", "name", "names", "count", "number", "seed", "choice"]
Body = Literal["required", "none"]


@dataclass(frozen=True)
class Option:
    """One option of a command: how it is written, what it takes, what it is for."""

    flag: str
    kind: Kind
    help: str
    default: Any = None
    choices: tuple[str, ...] = ()
    value: str = ""

    @property
    def key(self) -> str:
        """The name under which the parsed value is found."""
        return {"-o": "output", "-q": "quiet"}.get(self.flag, self.flag[2:].replace("-", "_"))

    @property
    def form(self) -> str:
        """The option with the word for its value, as the help writes it."""
        if self.kind == "flag":
            return self.flag
        return f"{self.flag} {self.value or '|'.join(self.choices)}"


@dataclass(frozen=True)
class Command:
    """One command: its positional words, its options, and whether it has a body."""

    name: str
    summary: str
    body: Body
    positional: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()
    example: str = ""

    @property
    def prefix(self) -> str:
        """How a line with this command begins."""
        return f"{'%%' if self.body == 'required' else '%'}meganeura {self.name}"


NAME_IT = Option("-o", "name", "bind the result to this name", value="NAME")
QUIET = Option("-q", "flag", "do not show the result")
VIEWS = ("live", "none")
OPTIMIZERS = ("adamw", "adam", "sgd")
SCHEDULES = ("constant", "cosine", "linear")

COMMANDS: tuple[Command, ...] = (
    Command(
        "compile",
        "compile the tensors that the cell's last line names",
        body="required",
        options=(
            NAME_IT,
            QUIET,
            Option("--name", "text", "what the program is called (default: NAME)", value="TEXT"),
            Option(
                "--device", "text", "gpu, numpy, or a part of an adapter's name", value="DEVICE"
            ),
            Option("--no-fuse", "flag", "one launch for each operation"),
            Option("--no-rewrite", "flag", "keep the graph as it was written"),
            Option("--no-alias", "flag", "a buffer of its own for every tensor"),
            Option("--trusted", "flag", "kernels without bounds checks, once they are verified"),
            Option("--rules-off", "names", "rewrite rules to leave out", value="RULE,RULE"),
        ),
        example="%%meganeura compile -o mlp\n"
        'x = mg.input("x", (128, 64))\n'
        'mg.nn.linear(x, 10, name="out").named("logits")',
    ),
    Command(
        "train",
        "train a program on the batches that the cell's last line gives",
        body="required",
        positional=("PROGRAM",),
        options=(
            Option(
                "--loss", "text", "the scalar to make small (default: the only one)", value="NAME"
            ),
            Option("--steps", "count", "how many steps", 100, value="N"),
            Option("--optimizer", "choice", "the update rule", "adamw", OPTIMIZERS),
            Option("--lr", "number", "the learning rate", value="RATE"),
            Option("--momentum", "number", "of sgd, 0 to 1", value="M"),
            Option("--weight-decay", "number", "of adamw", value="W"),
            Option("--schedule", "choice", "how the rate changes", "constant", SCHEDULES),
            Option("--clip-norm", "number", "the largest norm of all gradients", value="NORM"),
            Option("--seed", "seed", "of dropout and other random numbers", 0, value="SEED"),
            Option(
                "--view", "choice", "the live view, or only the line of progress", "live", VIEWS
            ),
            Option("-o", "name", "bind the Run to this name", value="RUN"),
            QUIET,
        ),
        example="%%meganeura train mlp --loss loss --steps 400 --lr 3e-3 -o run\n"
        "mg.data.batches(digits.train, 128, seed=0)",
    ),
    Command(
        "profile",
        "time every kernel of a program on its device",
        body="none",
        positional=("PROGRAM",),
        options=(
            Option("--steps", "count", "how many steps to time", 50, value="N"),
            Option("-o", "name", "bind the Profile to this name", value="NAME"),
            QUIET,
        ),
        example="%meganeura profile mlp --steps 50",
    ),
    Command("devices", "list the adapters, and why each is used or not", body="none"),
    Command("doctor", "look for the usual troubles, and say the line that mends each", body="none"),
    Command(
        "explain",
        "say in words and numbers what a kernel or a named tensor is",
        body="none",
        positional=("NAME",),
        options=(
            Option("--program", "name", "of this program (default: the newest)", value="PROGRAM"),
        ),
        example="%meganeura explain k0",
    ),
    Command(
        "examples",
        "list the examples, or put one into the next cell",
        body="none",
        optional=("EXAMPLE",),
        example="%meganeura examples mlp",
    ),
)


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate most like a word, or None when none is near."""
    found = difflib.get_close_matches(word, list(candidates), n=1, cutoff=0.5)
    return found[0] if found else None


def listing(names: Sequence[str]) -> str:
    """Names in a row with an "or" before the last."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} or {names[-1]}"


def form(command: Command) -> str:
    """The command's line in short, for messages."""
    parts = [command.prefix, *command.positional, *(f"[{name}]" for name in command.optional)]
    return " ".join([*parts, "[options]"] if command.options else parts)


def usage(command: Command) -> str:
    """The command's line with its words and all options."""
    parts = [command.prefix, *command.positional]
    parts += [f"[{name}]" for name in command.optional]
    parts += [f"[{option.form}]" for option in command.options]
    return " ".join(parts)


def help_text(command: Command | None = None) -> str:
    """What `--help` prints: of one command, or the list of all."""
    if command is None:
        rows = [f"  {item.prefix:<22} {item.summary}" for item in COMMANDS]
        return "\n".join(["The commands of Meganeura; each takes --help:", "", *rows])
    lines = [usage(command), "", f"  {command.summary}"]
    if command.options:
        width = max(len(option.form) for option in command.options)
        lines += ["", "Options:"]
        for option in command.options:
            default = "" if option.default is None else f" (default: {option.default})"
            lines.append(f"  {option.form:<{width}}  {option.help}{default}")
    if command.example:
        lines += ["", "Example:", *(f"  {line}" for line in command.example.splitlines())]
    return "\n".join(lines)
