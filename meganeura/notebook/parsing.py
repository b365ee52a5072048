"""Reads a magic's line by the table of commands; every error knows the word that it means.

argparse is not used: it knows no positions, so that its messages could not put a caret under the
word that is wrong.
"""

from __future__ import annotations

import keyword
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from meganeura.errors import MagicError
from meganeura.notebook.commands import COMMANDS, Command, Option, form, listing, nearest


@dataclass(frozen=True)
class MagicLine:
    """A magic's line as the user sees it: where it stands, and the part that is meant."""

    text: str
    cell: str = "the line"
    line: int = 1
    start: int = 0
    end: int = 0

    def where(self) -> str:
        """The place in one line, for messages."""
        return f"{self.cell}, line {self.line}: {self.text.strip()}"

    def at(self, start: int, end: int) -> MagicLine:
        """The same line with another part marked."""
        return MagicLine(self.text, self.cell, self.line, start, end)


@dataclass(frozen=True)
class Word:
    """One word of a line without its quotes, and its columns."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Call:
    """A line that was understood: the command and the value of every argument."""

    command: Command
    values: dict[str, Any] = field(default_factory=dict)
    line: MagicLine = field(default_factory=lambda: MagicLine(""))
    help: bool = False
    places: dict[str, MagicLine] = field(default_factory=dict)

    def __getitem__(self, key: str) -> Any:
        return self.values[key]

    def place(self, key: str) -> MagicLine:
        """Where the value of an argument stands in the line."""
        return self.places.get(key, self.line)


_WORD = re.compile(r"""(?:[^\s'"]|'[^']*'|"[^"]*")+""")


def words(line: MagicLine) -> list[Word]:
    """The words of a line after ``meganeura``, quotes taken off, a comment left out."""
    begin = re.match(r"\s*%{1,2}meganeura\b", line.text)
    position = begin.end() if begin else 0
    found: list[Word] = []
    while position < len(line.text):
        if line.text[position].isspace():
            position += 1
            continue
        if line.text[position] == "#":
            break
        match = _WORD.match(line.text, position)
        if match is None or (match.end() < len(line.text) and line.text[match.end()] in "'\""):
            start = match.end() if match else position
            raise MagicError(
                "A quotation mark is not closed",
                expected=f"a second {line.text[start]} on the same line",
                got=line.text[start:].strip(),
                hint="close the quotation, or leave the mark out",
                origin=line.at(start, len(line.text)),
            )
        found.append(Word("".join(shlex.split(match[0])), match.start(), match.end()))
        position = match.end()
    return found


def asks_overview(line: MagicLine) -> bool:
    """Whether a line asks what commands there are."""
    found = words(line)
    return bool(found) and found[0].text in ("--help", "-h", "help")


def find_command(line: MagicLine, found: list[Word]) -> Command:
    """The command that a line names."""
    names = [command.name for command in COMMANDS]
    if not found:
        raise MagicError(
            "The line names no command",
            expected=listing(names),
            hint="%meganeura --help",
            origin=line.at(0, len(line.text.rstrip())),
        )
    word = found[0]
    for command in COMMANDS:
        if command.name == word.text:
            return command
    raise MagicError(
        f"There is no command called {word.text}",
        expected=listing(names),
        got=word.text,
        hint=nearest(word.text, names) or "%meganeura --help",
        origin=line.at(word.start, word.end),
    )


def parse(line: MagicLine, *, body: bool | None = None) -> Call:
    """Reads a line such as ``%%meganeura train mlp --steps 400``.

    `body` says whether a cell stands below it (None: not asked). Raises MagicError with the place.
    """
    found = words(line)
    command = find_command(line, found)
    if any(word.text in ("--help", "-h") for word in found):
        return Call(command, line=line, help=True)
    check_body(command, line, body)
    values: dict[str, Any] = {option.key: option.default for option in command.options}
    for option in command.options:
        if option.kind == "flag":
            values[option.key] = False
    values.update({name.lower(): None for name in (*command.positional, *command.optional)})
    places: dict[str, MagicLine] = {}
    plain = read_options(command, line, found[1:], values, places)
    read_positional(command, line, plain, values, places)
    return Call(command, values, line, places=places)


def check_body(command: Command, line: MagicLine, body: bool | None) -> None:
    """Raises when a cell is missing below a command that needs one, or stands where none does."""
    if body is None or body == (command.body == "required"):
        return
    marked = line.at(0, len(line.text.rstrip()))
    if body:
        raise MagicError(
            f"{command.name} takes no body",
            expected="a line by itself",
            got="a cell below it",
            hint=command.prefix,
            origin=marked,
        )
    raise MagicError(
        f"{command.name} needs a body",
        expected=f"{command.prefix} on the first line, and Python below it",
        got="a line without a cell",
        hint=f"{command.prefix} --help",
        origin=marked,
    )


def read_options(
    command: Command,
    line: MagicLine,
    found: list[Word],
    values: dict[str, Any],
    places: dict[str, MagicLine],
) -> list[Word]:
    """Takes the options out of the words into `values`; the other words come back."""
    plain: list[Word] = []
    queue = list(found)
    while queue:
        word = queue.pop(0)
        if not word.text.startswith("-") or _is_number(word.text):
            plain.append(word)
            continue
        flag, equals, attached = word.text.partition("=")
        option = find_option(command, line, flag, word)
        if option.key in places:
            raise MagicError(
                f"{flag} is given twice",
                expected="each option once",
                hint="leave one of them out",
                origin=line.at(word.start, word.end),
            )
        if option.kind == "flag":
            if equals:
                raise MagicError(
                    f"{flag} takes no value",
                    got=word.text,
                    hint=flag,
                    origin=line.at(word.start, word.end),
                )
            places[option.key] = line.at(word.start, word.end)
            values[option.key] = True
            continue
        value = Word(attached, word.start + len(flag) + 1, word.end) if equals else word
        if not equals:
            value = next_value(option, line, word, queue)
        places[option.key] = line.at(value.start, value.end)
        values[option.key] = convert(option, value.text, places[option.key])
    return plain


def find_option(command: Command, line: MagicLine, flag: str, word: Word) -> Option:
    """The option of a command by the way it is written."""
    for option in command.options:
        if option.flag == flag:
            return option
    flags = [option.flag for option in command.options]
    raise MagicError(
        f"{command.name} has no option {flag}",
        expected=listing(flags) if flags else "no options",
        got=flag,
        hint=nearest(flag, flags) or f"{command.prefix} --help",
        origin=line.at(word.start, word.end),
    )


def next_value(option: Option, line: MagicLine, word: Word, queue: list[Word]) -> Word:
    """The word after an option, which is its value."""
    if not queue or (queue[0].text.startswith("-") and not _is_number(queue[0].text)):
        raise MagicError(
            f"{option.flag} needs a value",
            expected=option.form,
            got=f"{option.flag} {queue[0].text}" if queue else f"{option.flag} at the end",
            hint=option.form,
            origin=line.at(word.start, word.end),
        )
    return queue.pop(0)


def read_positional(
    command: Command,
    line: MagicLine,
    plain: list[Word],
    values: dict[str, Any],
    places: dict[str, MagicLine],
) -> None:
    """Gives the plain words to the positional arguments."""
    slots = (*command.positional, *command.optional)
    if len(plain) > len(slots):
        word = plain[len(slots)]
        raise MagicError(
            f"{command.name} does not know what to do with {word.text}",
            expected=form(command),
            got=word.text,
            hint=f"{command.prefix} --help",
            origin=line.at(word.start, word.end),
        )
    for slot, word in zip(slots, plain, strict=False):
        values[slot.lower()] = word.text
        places[slot.lower()] = line.at(word.start, word.end)
    for slot in command.positional[len(plain) :]:
        raise MagicError(
            f"{command.name} needs {slot}",
            expected=form(command),
            got=line.text.strip(),
            hint=f"{command.prefix} --help",
            origin=line.at(0, len(line.text.rstrip())),
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def _seed(text: str) -> int:
    number = int(text)
    if not 0 <= number < 2**32:
        raise ValueError(text)
    return number


def _number(text: str) -> float:
    number = float(text)
    if number != number or number in (float("inf"), float("-inf")):
        raise ValueError(text)
    return number


def _name(text: str) -> str:
    if not text.isidentifier() or keyword.iskeyword(text):
        raise ValueError(text)
    return text


def _names(text: str) -> frozenset[str]:
    return frozenset(part.strip() for part in text.split(",") if part.strip())


_CONVERTERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "text": (str, "text"),
    "name": (_name, "a Python name"),
    "names": (_names, "names with commas between them"),
    "count": (_count, "a whole number of at least 1"),
    "seed": (_seed, "a whole number from 0 to 4294967295"),
    "number": (_number, "a number"),
}


def convert(option: Option, text: str, place: MagicLine) -> Any:
    """The value of an option from its text."""
    if option.kind == "choice":
        if text in option.choices:
            return text
        raise MagicError(
            f"{option.flag} cannot be {text}",
            expected=listing(option.choices),
            got=text,
            hint=f"{option.flag} {nearest(text, option.choices) or option.choices[0]}",
            origin=place,
        )
    converter, expected = _CONVERTERS[option.kind]
    try:
        return converter(text)
    except ValueError:
        raise MagicError(
            f"{option.flag} cannot be {text}",
            expected=expected,
            got=text,
            hint=option.form,
            origin=place,
        ) from None
