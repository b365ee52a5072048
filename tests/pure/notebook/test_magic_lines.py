"""The magics' lines: what is understood, and the exact words for what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from meganeura.errors import MagicError
from meganeura.notebook.commands import COMMANDS, Command, help_text
from meganeura.notebook.parsing import MagicLine, asks_overview, parse


def test_a_whole_line() -> None:
    call = parse(MagicLine("%%meganeura train mlp --steps 400 --lr=3e-3 -o run # a comment"))
    assert call.command.name == "train"
    assert call["program"] == "mlp"
    assert call["steps"] == 400
    assert call["lr"] == 3e-3
    assert call["output"] == "run"
    assert call["loss"] is None
    assert call["quiet"] is False


def test_quotes_and_lists() -> None:
    call = parse(MagicLine("%%meganeura compile --name 'my model' --rules-off a,b --no-fuse"))
    assert call["name"] == "my model"
    assert call["rules_off"] == frozenset({"a", "b"})
    assert call["no_fuse"] is True
    assert call["trusted"] is False


def test_a_negative_number_is_a_value() -> None:
    with pytest.raises(MagicError) as caught:
        parse(MagicLine("%%meganeura train mlp --steps -4"))
    assert caught.value.what == "--steps cannot be -4"


HEAD = "%%meganeura train"


@pytest.mark.parametrize(
    ("line", "body", "message", "marked"),
    [
        (
            "%%meganeura trian mlp",
            True,
            "There is no command called trian\n"
            "  where:    In[3], line 1: %%meganeura trian mlp\n"
            "  expected: compile, train, profile, devices, doctor, explain or examples\n"
            "  got:      trian\n"
            "  try:      train",
            "trian",
        ),
        (
            "%meganeura",
            False,
            "The line names no command\n"
            "  where:    In[3], line 1: %meganeura\n"
            "  expected: compile, train, profile, devices, doctor, explain or examples\n"
            "  try:      %meganeura --help",
            "%meganeura",
        ),
        (
            "%meganeura profile mlp --step 5",
            False,
            "profile has no option --step\n"
            "  where:    In[3], line 1: %meganeura profile mlp --step 5\n"
            "  expected: --steps, -o or -q\n"
            "  got:      --step\n"
            "  try:      --steps",
            "--step",
        ),
        (
            "%meganeura devices -x",
            False,
            "devices has no option -x\n"
            "  where:    In[3], line 1: %meganeura devices -x\n"
            "  expected: no options\n"
            "  got:      -x\n"
            "  try:      %meganeura devices --help",
            "-x",
        ),
        (
            f"{HEAD} mlp --lr",
            True,
            "--lr needs a value\n"
            f"  where:    In[3], line 1: {HEAD} mlp --lr\n"
            "  expected: --lr RATE\n"
            "  got:      --lr at the end\n"
            "  try:      --lr RATE",
            "--lr",
        ),
        (
            f"{HEAD} mlp --lr --steps 5",
            True,
            "--lr needs a value\n"
            f"  where:    In[3], line 1: {HEAD} mlp --lr --steps 5\n"
            "  expected: --lr RATE\n"
            "  got:      --lr --steps\n"
            "  try:      --lr RATE",
            "--lr",
        ),
        (
            f"{HEAD} mlp --lr fast",
            True,
            "--lr cannot be fast\n"
            f"  where:    In[3], line 1: {HEAD} mlp --lr fast\n"
            "  expected: a number\n"
            "  got:      fast\n"
            "  try:      --lr RATE",
            "fast",
        ),
        (
            f"{HEAD} mlp --optimizer adamm",
            True,
            "--optimizer cannot be adamm\n"
            f"  where:    In[3], line 1: {HEAD} mlp --optimizer adamm\n"
            "  expected: adamw, adam or sgd\n"
            "  got:      adamm\n"
            "  try:      --optimizer adam",
            "adamm",
        ),
        (
            f"{HEAD} mlp -q -q",
            True,
            "-q is given twice\n"
            f"  where:    In[3], line 1: {HEAD} mlp -q -q\n"
            "  expected: each option once\n"
            "  try:      leave one of them out",
            "-q",
        ),
        (
            f"{HEAD} mlp -q=3",
            True,
            "-q takes no value\n"
            f"  where:    In[3], line 1: {HEAD} mlp -q=3\n"
            "  got:      -q=3\n"
            "  try:      -q",
            "-q=3",
        ),
        (
            f"{HEAD} mlp cnn",
            True,
            "train does not know what to do with cnn\n"
            f"  where:    In[3], line 1: {HEAD} mlp cnn\n"
            "  expected: %%meganeura train PROGRAM [options]\n"
            "  got:      cnn\n"
            "  try:      %%meganeura train --help",
            "cnn",
        ),
        (
            f"{HEAD} --steps 4",
            True,
            "train needs PROGRAM\n"
            f"  where:    In[3], line 1: {HEAD} --steps 4\n"
            "  expected: %%meganeura train PROGRAM [options]\n"
            f"  got:      {HEAD} --steps 4\n"
            "  try:      %%meganeura train --help",
            f"{HEAD} --steps 4",
        ),
        (
            f"{HEAD} 'mlp",
            True,
            "A quotation mark is not closed\n"
            f"  where:    In[3], line 1: {HEAD} 'mlp\n"
            "  expected: a second ' on the same line\n"
            "  got:      'mlp\n"
            "  try:      close the quotation, or leave the mark out",
            "'mlp",
        ),
        (
            "%meganeura train mlp",
            False,
            "train needs a body\n"
            "  where:    In[3], line 1: %meganeura train mlp\n"
            "  expected: %%meganeura train on the first line, and Python below it\n"
            "  got:      a line without a cell\n"
            "  try:      %%meganeura train --help",
            "%meganeura train mlp",
        ),
        (
            "%%meganeura devices",
            True,
            "devices takes no body\n"
            "  where:    In[3], line 1: %%meganeura devices\n"
            "  expected: a line by itself\n"
            "  got:      a cell below it\n"
            "  try:      %meganeura devices",
            "%%meganeura devices",
        ),
        (
            "%%meganeura compile -o 3d",
            True,
            "-o cannot be 3d\n"
            "  where:    In[3], line 1: %%meganeura compile -o 3d\n"
            "  expected: a Python name\n"
            "  got:      3d\n"
            "  try:      -o NAME",
            "3d",
        ),
    ],
)
def test_a_line_that_is_wrong(line: str, body: bool, message: str, marked: str) -> None:
    with pytest.raises(MagicError) as caught:
        parse(MagicLine(line, "In[3]"), body=body)
    assert str(caught.value) == message
    place = caught.value.origin
    assert isinstance(place, MagicLine)
    assert place.text[place.start : place.end] == marked


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_command_has_help_and_an_example_that_parses(command: Command) -> None:
    text = help_text(command)
    assert text.startswith(command.prefix)
    for option in command.options:
        assert option.flag in text
        assert option.help in text
    assert parse(MagicLine(f"{command.prefix} --help")).help
    if command.example:
        assert parse(MagicLine(command.example.splitlines()[0])).command is command


def test_the_overview_names_every_command() -> None:
    assert asks_overview(MagicLine("%meganeura --help"))
    assert not asks_overview(MagicLine("%meganeura devices"))
    for command in COMMANDS:
        assert command.prefix in help_text()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_the_page_about_the_notebook_names_every_option(command: Command, root: Path) -> None:
    page = (root / "docs/notebook.md").read_text(encoding="utf-8")
    assert f"`{command.prefix}" in page
    missing = [option.flag for option in command.options if f"`{option.flag}`" not in page]
    assert missing == []
