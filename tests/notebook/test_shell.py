"""The magics in a shell: what cells give, what they bind, and the exact text of what goes wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from IPython.core.completer import provisionalcompleter

from meganeura.notebook.formatters import WIDGET_MIME
from meganeura.runtime.program import Program
from meganeura.train.run import Run
from tests.notebook.conftest import Notebook

MODEL = """%%meganeura compile -o net --device numpy
x = mg.input("x", (8, 4))
y = mg.input("y", (8,), mg.i32)
h = mg.relu(mg.nn.linear(x, 6, name="hidden"))
logits = mg.nn.linear(h, 3, name="out")
mg.cross_entropy(logits, y).named("loss"), logits.named("logits")
"""
DATA = """
rng = np.random.default_rng(0)
rows = rng.normal(size=(64, 4)).astype("float32")
labels = (rows[:, 0] > 0).astype("int32") + (rows[:, 1] > 0)
"""
BATCHES = "mg.data.batches((rows, labels), 8, seed=0)"


@pytest.fixture
def model(notebook: Notebook) -> Notebook:
    """A notebook with a compiled program and data."""
    notebook.ok("import meganeura as mg\nimport numpy as np")
    notebook.ok(DATA)
    notebook.ok(MODEL)
    return notebook


def bundle(notebook: Notebook, value: Any) -> dict[str, Any]:
    formatter: Any = notebook.shell.display_formatter
    data: dict[str, Any] = formatter.format(value)[0]
    return data


def test_compile_binds_and_returns(model: Notebook) -> None:
    program = model["net"]
    assert isinstance(program, Program)
    assert model["Out"][3] is program
    assert program.name == "net"
    assert program.device.name.startswith("NumPy")
    assert model["h"].shape == (8, 6)  # the body is the user's own code


def test_the_nodes_know_the_lines_of_the_cell(model: Notebook) -> None:
    assert model["h"].node.origin.where() == (
        'In[3], line 4: h = mg.relu(mg.nn.linear(x, 6, name="hidden"))'
    )


def test_blank_lines_before_the_magic_count(model: Notebook) -> None:
    model.ok("\n\n%%meganeura compile -q --device numpy\n\nz = mg.ones((2,)) + 1\nz")
    assert model["z"].node.origin.where() == "In[4], line 5: z = mg.ones((2,)) + 1"


def test_a_function_keeps_the_cell_that_defined_it(model: Notebook) -> None:
    model.ok("def block(t):\n    return t * 2")
    model.ok("z = block(mg.ones((2,)))")
    assert model["z"].node.origin.where() == "In[4], line 2: return t * 2"


def test_options_reach_the_compiler(model: Notebook) -> None:
    cell = MODEL.replace("-o net", "-o plain --no-fuse --no-alias --no-rewrite --name 'my net'")
    program = model.ok(cell)
    options = program.options
    assert (options.fuse, options.alias, options.rewrite) == (False, False, False)
    assert program.name == "my net"
    assert len(program.kernels) > len(model["net"].kernels)


@pytest.mark.parametrize("silence", ["-q", ";"])
def test_a_result_can_be_silenced(model: Notebook, silence: str) -> None:
    cell = MODEL.replace("-o net", "-o other -q") if silence == "-q" else MODEL.rstrip() + ";"
    assert model.ok(cell) is None


def test_training_returns_a_run(model: Notebook, capsys: pytest.CaptureFixture[str]) -> None:
    head = "%%meganeura train net --loss loss --steps 20 --lr 0.05 -o run"
    result = model.ok(f"{head}\n{BATCHES}")
    run = model["run"]
    assert isinstance(run, Run)
    assert result is run
    assert (run.steps_done, run.ending) == (20, "done")
    printed = capsys.readouterr()  # in a terminal the line is written over itself
    assert "\rnet: step 20/20, loss " in printed.err


@pytest.mark.parametrize(
    "options",
    [
        "--optimizer sgd --momentum 0.9 --schedule cosine",
        "--optimizer adam --schedule linear --clip-norm 1 --seed 3",
        "--weight-decay 0.1 --view none",
    ],
)
def test_training_options(model: Notebook, options: str) -> None:
    run = model.ok(f"%%meganeura train net --steps 3 --lr 0.01 {options} -o run\n{BATCHES}")
    assert run.steps_done == 3


def test_the_program_shares_what_was_trained(model: Notebook) -> None:
    before = model["net"].parameters
    model.ok(f"%%meganeura train net --steps 5 --lr 0.1 -q -o run\n{BATCHES}")
    after = model["net"].parameters
    assert not np.array_equal(before["hidden.w"], after["hidden.w"])
    assert np.array_equal(model["run"].parameters["hidden.w"], after["hidden.w"])


def test_a_live_view_changes_no_bit(model: Notebook) -> None:
    start = model["net"].parameters
    cell = f"%%meganeura train net --steps 150 --lr 0.05 -o run\n{BATCHES}"
    model.ok(cell)
    seen = model["run"].history.losses
    timings = model["run"].step_program.timings
    assert set(timings) == {kernel.name for kernel in model["run"].step_program.kernels}
    model["net"].set_parameters(start)
    model.ok(cell.replace("-o run", "-o blind --view none"))
    assert np.array_equal(seen, model["blind"].history.losses)


def test_profile(model: Notebook) -> None:
    result = model.ok("%meganeura profile net --steps 3 -o times")
    assert result is model["times"]
    assert result.steps == 3
    assert set(model["net"].timings) == {kernel.name for kernel in model["net"].kernels}
    data = bundle(model, result)
    assert "<caption>net, inference: " in data["text/html"]


def test_explain(model: Notebook) -> None:
    text = repr(model.ok("%meganeura explain k0"))
    assert text.startswith("k0 of net, inference: ")
    assert "From In[3], line 4: h = mg.relu(" in text
    assert "Computed by k" in repr(model.ok("%meganeura explain logits"))


def test_devices_and_doctor(model: Notebook) -> None:
    sheet = model.ok("%meganeura devices")
    assert repr(sheet).startswith("Devices")
    assert "NumPy" in repr(sheet)
    assert "<table>" in bundle(model, sheet)["text/html"]
    assert "Python" in repr(model.ok("%meganeura doctor"))


def test_examples_run(notebook: Notebook) -> None:
    from meganeura.notebook.examples import EXAMPLES

    notebook.ok("import meganeura as mg")
    assert "softmax" in repr(notebook.ok("%meganeura examples"))
    for example in EXAMPLES.values():
        text = example.text.replace("--steps 400", "--steps 2").replace("--steps 50", "--steps 2")
        notebook.ok(text.replace("compile -o", "compile --device numpy -o"))


def test_help(model: Notebook, capsys: pytest.CaptureFixture[str]) -> None:
    model.ok("%meganeura --help")
    model.ok("%meganeura profile --help")
    printed = capsys.readouterr().out
    assert "%%meganeura compile" in printed
    assert "%meganeura profile PROGRAM" in printed


MAGIC_ERROR = "MagicError: "


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (
            "%%meganeura compile\nx = = 3",
            "  Cell In[4], line 2\n    x = = 3\n        ^\nSyntaxError: invalid syntax\n",
        ),
        (
            '%%meganeura compile\n\nbad = 1 + (x @ mg.input("w", (5, 6)))',
            "ShapeError: matmul of [8, 4] and [5, 6]\n"
            "\n"
            "In[4], line 3\n"
            '      3 bad = 1 + (x @ mg.input("w", (5, 6)))\n'
            "                   ^^^^^^^^^^^^^^^^^^^^^^^^^\n"
            "\n"
            "  expected: [..., m, k] by [..., k, n] with one k\n"
            "  got:      k of 4 and 5\n"
            "  try:      check the layer before, or transpose an operand with .T",
        ),
        (
            "%%meganeura compile -o bad\n3",
            "MagicError: The cell ends without tensors\n"
            "\n"
            "In[4], line 1\n"
            "      1 %%meganeura compile -o bad\n"
            "        ^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
            "\n"
            "  expected: a last line that is one tensor, several, or a dict of them\n"
            "  got:      int\n"
            '  try:      end the cell with: loss.named("loss"), logits.named("logits")',
        ),
        (
            "a = 1\n%meganeura profile nett",
            "MagicError: There is no program called nett\n"
            "\n"
            "In[4], line 2\n"
            "      2 %meganeura profile nett\n"
            "                           ^^^^\n"
            "\n"
            "  expected: net\n"
            "  got:      nett\n"
            "  try:      net",
        ),
        (
            "%meganeura profile rows",
            "MagicError: rows is not a program\n"
            "\n"
            "In[4], line 1\n"
            "      1 %meganeura profile rows\n"
            "                           ^^^^\n"
            "\n"
            "  expected: net\n"
            "  got:      rows, a ndarray\n"
            "  try:      net",
        ),
        (
            "%%meganeura train net --steps 5\nrows;\nx = 1",
            "MagicError: The cell ends without data\n"
            "\n"
            "In[4], line 1\n"
            "      1 %%meganeura train net --steps 5\n"
            "        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
            "\n"
            "  expected: a last line that gives batches\n"
            "  got:      nothing\n"
            "  try:      mg.data.batches(digits.train, 128, seed=0)",
        ),
        (
            "%%meganeura train net --momentum 0.9\nrows",
            "MagicError: adamw has no --momentum\n"
            "\n"
            "In[4], line 1\n"
            "      1 %%meganeura train net --momentum 0.9\n"
            "                                         ^^^\n"
            "\n"
            "  expected: --weight-decay\n"
            "  got:      --momentum 0.9\n"
            "  try:      --optimizer sgd",
        ),
        (
            "%%meganeura compile --rules-off abc\nlogits",
            "OptionError: no rewrite rule is named 'abc'\n"
            "\n"
            "In[4], line 1\n"
            "      1 %%meganeura compile --rules-off abc\n"
            "        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
            "\n"
            "  expected: a name from docs/rules.md\n"
            "  got:      'abc'\n"
            "  try:      program.passes lists what matched",
        ),
        (
            "%meganeura explain k77",
            "MagicError: Nothing is called k77\n",
        ),
        (
            "%meganeura examples mpl",
            "MagicError: There is no example called mpl\n"
            "\n"
            "In[4], line 1\n"
            "      1 %meganeura examples mpl\n"
            "                            ^^^\n"
            "\n"
            "  expected: digits, softmax, mlp, cnn, train or profile\n"
            "  got:      mpl\n"
            "  try:      %meganeura examples mlp",
        ),
        (
            "net(x=3)",
            "FeedError: the feed 'x' has another shape\n"
            "\n"
            "In[3], line 2\n"
            '      2 x = mg.input("x", (8, 4))\n'
            "            ^^^^^^^^^^^^^^^^^^^^^\n"
            "\n"
            "  expected: [8, 4] f32\n"
            "  got:      [] int64\n"
            "  while:    In[4], line 1: net(x=3)",
        ),
    ],
)
def test_what_goes_wrong_is_said_at_the_line(model: Notebook, cell: str, text: str) -> None:
    shown = model.fails(cell)
    assert shown == text or (text.endswith("\n") and shown.startswith(text))


def test_an_error_of_the_body_shows_the_cell_only(model: Notebook) -> None:
    shown = model.fails("%%meganeura compile\nx = 3\n\n1 / 0")
    assert "Cell In[4], line 4" in shown
    assert "run_cell_magic" not in shown
    assert "meganeura/notebook" not in shown
    assert shown.rstrip().endswith("ZeroDivisionError: division by zero")


def test_verbose_mode_shows_the_whole_traceback(model: Notebook) -> None:
    model.ok("%xmode Verbose")
    shown = model.fails("net(x=3)")
    model.ok("%xmode Context")
    assert "meganeura/runtime/feeds.py" in shown


def test_a_failed_run_is_kept(model: Notebook) -> None:
    bad = "[(np.full((8, 4), np.nan, np.float32), labels[:8])] * 3"
    shown = model.fails(f"%%meganeura train net --steps 3 -o broken\n{bad}")
    assert shown.startswith("NonFiniteError: ")
    assert "while:    In[4], line 1: %%meganeura train net --steps 3 -o broken" in shown
    assert model["broken"].ending == "not finite"


def test_the_bundle_is_static_and_live(model: Notebook) -> None:
    data = bundle(model, model["net"])
    assert set(data) >= {
        "application/vnd.meganeura.program+json",
        "image/svg+xml",
        "text/html",
        "text/plain",
        WIDGET_MIME,
    }
    kernel = bundle(model, model["net"].kernels[0])
    assert "&lt;" in kernel["text/html"]
    assert "<table>" in bundle(model, model["h"])["text/html"]


def test_unloading_takes_everything_back(model: Notebook) -> None:
    from meganeura.errors import MeganeuraError

    model.ok("%unload_ext meganeura")
    assert "UsageError" in "".join(model.errors) or not model.run("%meganeura devices").success
    assert "_render_traceback_" not in vars(MeganeuraError)
    assert WIDGET_MIME not in bundle(model, model["net"])
    model.ok("%load_ext meganeura")
    assert WIDGET_MIME in bundle(model, model["net"])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("%%meganeura train n", ["net"]),
        ("%%meganeura train net --lo", ["--loss"]),
        ("%%meganeura train net --loss ", ["logits", "loss"]),
        ("%meganeura explain log", ["logits"]),
    ],
)
def test_completion_in_the_shell(model: Notebook, line: str, expected: list[str]) -> None:
    text = f"{line}\n{BATCHES}" if line.startswith("%%") else line
    with provisionalcompleter():
        found = list(model.shell.Completer.completions(text, len(line)))
    assert [item.text for item in found] == expected


def test_completion_leaves_python_alone(model: Notebook) -> None:
    with provisionalcompleter():
        found = [item.text for item in model.shell.Completer.completions("mg.nn.lin", 9)]
    assert any(text.endswith("linear") for text in found)
