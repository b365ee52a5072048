"""Completion of the magics' lines: commands, options, and names of programs and kernels."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from IPython.core.completer import (
    CompletionContext,
    SimpleCompletion,
    SimpleMatcherResult,
    context_matcher,
)
from IPython.core.interactiveshell import InteractiveShell

from meganeura.notebook.commands import COMMANDS, Command, Option
from meganeura.notebook.examples import EXAMPLES

_LINE = re.compile(r"\s*%{1,2}meganeura(?P<rest>\s.*)?$", re.DOTALL)


@dataclass(frozen=True)
class Suggestion:
    """One thing that may stand at the cursor, and what sort of thing it is."""

    text: str
    kind: str


@dataclass(frozen=True)
class Names:
    """What the user's namespace offers: programs, and per program its outputs and its kernels."""

    programs: tuple[str, ...] = ()
    outputs: Mapping[str, tuple[str, ...]] | None = None
    explainable: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    devices: tuple[str, ...] = ("gpu", "numpy")


def suggest(before: str, names: Names) -> list[Suggestion] | None:
    """What may follow `before`, a magic's line up to the cursor; None for any other line."""
    match = _LINE.match(before)
    if match is None or match["rest"] is None:
        return None
    typed = match["rest"].split()
    current = "" if match["rest"][-1:].isspace() else typed.pop()
    if not typed:
        found = [Suggestion(command.name, "command") for command in COMMANDS]
        return _matching(current, [*found, Suggestion("--help", "option")])
    command = next((item for item in COMMANDS if item.name == typed[0]), None)
    if command is None:
        return []
    return _matching(current, _arguments(command, typed[1:], current, names))


def _matching(current: str, found: Iterable[Suggestion]) -> list[Suggestion]:
    return [item for item in found if item.text.startswith(current)]


def _arguments(command: Command, typed: list[str], current: str, names: Names) -> list[Suggestion]:
    """The options that are not given yet, the values of the last one, or the positional names."""
    previous = next((item for item in command.options if typed and item.flag == typed[-1]), None)
    if previous is not None and previous.kind != "flag":
        return [Suggestion(text, "value") for text in _values(previous, typed, names)]
    options = [item.flag for item in command.options if item.flag not in typed]
    found = [Suggestion(flag, "option") for flag in (*options, "--help")]
    if current.startswith("-"):
        return found
    slots = (*command.positional, *command.optional)
    plain = _plain(command, typed)
    if plain < len(slots):
        return [Suggestion(text, "name") for text in _positional(slots[plain], names)] + found
    return found


def _plain(command: Command, typed: list[str]) -> int:
    """How many positional words are typed already."""
    flags = {option.flag: option for option in command.options}
    count, skip = 0, False
    for word in typed:
        if skip:
            skip = False
        elif word in flags:
            skip = flags[word].kind != "flag"
        elif not word.startswith("-"):
            count += 1
    return count


def _values(option: Option, typed: list[str], names: Names) -> tuple[str, ...]:
    if option.kind == "choice":
        return option.choices
    if option.flag == "--loss":
        outputs = names.outputs or {}
        known = [outputs[word] for word in typed if word in outputs]
        return (
            known[0] if known else tuple(sorted({name for row in outputs.values() for name in row}))
        )
    by_flag = {"--device": names.devices, "--rules-off": names.rules, "--program": names.programs}
    return by_flag.get(option.flag, ())


def _positional(slot: str, names: Names) -> tuple[str, ...]:
    by_slot = {
        "PROGRAM": names.programs,
        "NAME": names.explainable,
        "EXAMPLE": tuple(EXAMPLES),
    }
    return by_slot.get(slot, ())


def matcher(names: Callable[[], Names]) -> Callable[[CompletionContext], SimpleMatcherResult]:
    """The matcher that IPython asks; on a magic's line it is the only one that answers."""

    def meganeura_matcher(context: CompletionContext) -> SimpleMatcherResult:
        first = context.cursor_line == 0
        line = context.text_until_cursor
        cell = line.lstrip().startswith("%%")
        found = suggest(line, names()) if first or not cell else None
        if found is None:
            return SimpleMatcherResult(completions=[], suppress=False)
        done = [SimpleCompletion(item.text, type=item.kind) for item in found]
        return SimpleMatcherResult(completions=done, suppress=True)

    decorate: Any = context_matcher(identifier="meganeura")
    decorated: Callable[[CompletionContext], SimpleMatcherResult] = decorate(meganeura_matcher)
    return decorated


def install(shell: InteractiveShell, names: Callable[[], Names]) -> None:
    """Adds the matcher to the shell; `uninstall` takes it out again."""
    completer: Any = shell.Completer
    completer.custom_matchers.append(matcher(names))


def uninstall(shell: InteractiveShell) -> None:
    """Takes the matcher out of the shell."""
    completer: Any = shell.Completer
    completer.custom_matchers[:] = [
        item
        for item in completer.custom_matchers
        if getattr(item, "matcher_identifier", "") != "meganeura"
    ]
