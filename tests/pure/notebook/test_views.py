"""Views of real programs on the NumPy device: plain JSON that agrees with the plan."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import meganeura as mg
from meganeura.notebook import sentences as say
from meganeura.notebook.pass_views import compare
from meganeura.notebook.views import MIME, bundle, program_view, saved

RNG = np.random.default_rng(0)


def batches() -> Iterator[tuple[Any, Any]]:
    while True:
        yield RNG.normal(size=(8, 12)).astype(np.float32), RNG.integers(0, 3, 8).astype(np.int32)


@pytest.fixture(scope="module")
def program() -> Any:
    x = mg.input("x", (8, 12))
    y = mg.input("y", (8,), mg.i32)
    h = mg.relu(mg.nn.linear(x, 5, name="hidden"))
    logits = mg.nn.linear(h, 3, name="out")
    outputs = {"loss": mg.cross_entropy(logits, y), "logits": logits}
    return mg.compile(outputs, name="mlp", device="numpy")


@pytest.fixture(scope="module")
def step(program: Any) -> Any:
    run = mg.train(program, loss="loss", optimizer=mg.AdamW(1e-2), data=batches(), steps=2)
    return run.step_program


@pytest.fixture(scope="module", params=["inference", "training step"])
def view(request: pytest.FixtureRequest, program: Any, step: Any) -> Any:
    return program_view(program if request.param == "inference" else step)


def test_a_view_is_plain_json(view: Any) -> None:
    assert json.loads(json.dumps(view, allow_nan=False)) == view


def test_the_header_says_what_the_plan_says(program: Any, step: Any) -> None:
    for made in (program, step):
        header = program_view(made)["header"]
        assert (header["name"], header["kind"]) == ("mlp", made.kind)
        assert header["launches"] == len(made.schedule.launches)
        assert header["waves"] == len(made.schedule.waves)
        assert header["memory_bytes"] == made.memory.planned + made.memory.resident
        assert header["step_us"] is None
        assert header["note"] == (
            "No Vulkan or Metal adapter here. NumPy runs the same kernels' regions."
        )


def test_nodes_refer_to_each_other_and_to_the_users_lines(view: Any) -> None:
    for i, node in enumerate(view["nodes"]):
        assert all(0 <= j < i for j in node["inputs"])
    names = {n.get("name") for n in view["nodes"]}
    assert {"x", "y", "hidden.w", "hidden.b", "h", "logits"} <= names
    relu = next(n for n in view["nodes"] if n["label"] == "relu")
    source = view["sources"][relu["source"]]
    assert source["cell"] == "test_views.py"
    assert source["text"] == 'h = mg.relu(mg.nn.linear(x, 5, name="hidden"))'


def test_every_launch_of_the_plan_is_a_kernel_with_its_text(step: Any) -> None:
    view = program_view(step)
    assert [k["id"] for k in view["kernels"]] == [k.name for k in step.kernels]
    for shown, kernel in zip(view["kernels"], step.kernels, strict=True):
        modules = view["modules"]
        text = [modules["lines"][i] for i in modules["texts"][shown["wgsl"]]]
        assert "\n".join(text) == kernel.wgsl
        assert (shown["reads"], shown["writes"]) == (kernel.bytes_read, kernel.bytes_written)
        assert shown["unfused"] >= shown["reads"] + shown["writes"]
        lines = kernel.wgsl.count("\n") + 1
        assert all(1 <= int(line) <= lines for line in shown["lines"])
        inside = {n for nodes in shown["lines"].values() for n in nodes}
        assert inside <= set(range(len(view["nodes"])))


def test_gradients_and_updates_have_the_names_of_what_they_belong_to(step: Any) -> None:
    view = program_view(step)
    outputs = {t["label"] for k in view["kernels"] for t in k["outputs"]}
    assert {"hidden.w", "hidden.w.m", "hidden.w.v", "out.b"} <= outputs
    assert {n for k in view["kernels"] for n in k["in_place"]} == {
        "hidden.w",
        "hidden.b",
        "out.w",
        "out.b",
    }
    scopes = {k["scope"] for k in view["kernels"]}
    assert scopes == {"hidden", "out", "cross_entropy"}


def test_pictures_hold_every_kernel_once(view: Any) -> None:
    kernels = [k["id"] for k in view["kernels"]]
    by_kernel = [b["id"] for b in view["pictures"]["kernel"]["boxes"] if b["role"] == "kernel"]
    assert sorted(by_kernel) == sorted(kernels)
    groups = [i["ref"] for b in view["pictures"]["scope"]["boxes"] for i in b["items"]]
    assert sorted(groups) == sorted(kernels)
    flat = {b["ref"] for b in view["pictures"]["flat"]["boxes"]}
    assert flat == {i for i, n in enumerate(view["nodes"]) if n.get("leaf") != "constant"}


def test_the_layout_is_deterministic(program: Any) -> None:
    first, second = program_view(program), program_view(program)
    assert first["pictures"] == second["pictures"]


def test_memory_and_schedule_are_the_plans(step: Any) -> None:
    view = program_view(step)
    memory = view["memory"]
    assert memory["buffers"] == [b.nbytes for b in step.memory.buffers]
    assert memory["peak"] == max(memory["live"]) == step.memory.peak
    assert sum(size for _, size in memory["held"]) == memory["resident"]
    launches = view["schedule"]["launches"]
    for i, launch in enumerate(launches):
        assert all(launches[j]["wave"] < launch["wave"] for j in launch["waits_for"])
        assert i in view["schedule"]["waves"][launch["wave"]]


def test_measured_times_fill_the_view(program: Any) -> None:
    names = [k.name for k in program.kernels]
    program.timings.update({name: [1.0, 2.0, 3.0, 4.0, 100.0] for name in names})
    try:
        view = program_view(program)
    finally:
        program.timings.clear()
    assert all(k["median_us"] == 3.0 for k in view["kernels"])
    assert view["timings"]["steps"] == 5
    assert view["timings"]["sum_us"] == 3.0 * len(names)
    assert view["header"]["step_us"] == 3.0 * len(program.schedule.waves)
    lead, rest = view["sentences"]["timings"]
    assert lead == f"{names[0]} takes most, 3 µs:"
    assert rest.startswith(view["kernels"][0]["label"])


def test_passes_compare_graphs_and_list_decisions(program: Any) -> None:
    view = program_view(program)
    passes = {p["name"]: p for p in view["passes"]}
    assert list(passes) == [*dict.fromkeys(r.name for r in program.passes)]
    assert [row[0] for row in passes["fuse"]["rows"]] == [k["id"] for k in view["kernels"]]
    assert passes["memory"]["mark"] == f"{len(program.memory.buffers)} buffers"
    for record, shown in zip(program.passes, view["passes"], strict=True):
        if shown["before"] is None:
            continue
        added, removed = shown["added"], shown["removed"]
        assert shown["after"] - shown["before"] == added - removed
        assert shown["before"] == len(record.before.nodes)


def test_a_graph_compared_with_itself_has_not_changed(program: Any) -> None:
    difference = compare(program.graph, program.graph)
    assert (difference.added, difference.removed, difference.changed) == ([], [], set())


def test_the_bundle_has_every_static_form(view: Any) -> None:
    forms = bundle(view)
    assert list(forms) == [MIME, "image/svg+xml", "text/html", "text/plain"]
    assert forms["image/svg+xml"].startswith("<svg ")
    assert forms["text/html"].count('scope="row"') == len(view["kernels"])
    assert forms["text/plain"].splitlines()[0] == view["caption"]


def test_a_program_without_kernels_has_a_view() -> None:
    x = mg.input("x", (2,))
    view = program_view(mg.compile({"y": x}, name="nothing", device="numpy"))
    assert json.dumps(view, allow_nan=False)
    assert bundle(view)["text/plain"]


def test_sentences_carry_the_numbers(step: Any) -> None:
    view = program_view(step)
    lead, rest = view["sentences"]["graph"]
    moved = sum(k["reads"] + k["writes"] for k in view["kernels"])
    assert lead.endswith(f"become {len(view['kernels'])} launches:")
    assert say.amount(moved, "B") in rest
    for kernel in view["kernels"]:
        sentence = " ".join(view["sentences"]["kernel"][kernel["id"]])
        assert sentence.startswith(f"{kernel['id']} ")
        assert say.amount(kernel["reads"] + kernel["writes"], "B") in sentence


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0, "B", "0 B"),
        (1023, "B", "1,023 B"),
        (1024, "B", "1 KiB"),
        (82_120, "B", "80.2 KiB"),
        (3 << 30, "B", "3 GiB"),
        (15_400, "flop", "15.4 kflop"),
        (999, "flop", "999 flop"),
    ],
)
def test_amounts_have_three_figures_and_a_unit(value: float, unit: str, text: str) -> None:
    assert say.amount(value, unit) == text


def test_loss_sentences() -> None:
    assert say.loss_sentence([])[0] == "No run yet."
    run = {"name": "run 1", "points": [[1, 2.3], [400, 0.05]], "rate": 14080.0, "step": 400}
    assert say.loss_sentence([run]) == [
        "run 1 went from 2.3 to 0.05",
        "in 400 steps, 14,080 steps/s.",
    ]


def test_a_saved_view_is_at_most_as_large_as_allowed_and_says_what_is_missing(step: Any) -> None:
    view = program_view(step)
    assert saved(view) is view
    sizes = []
    for limit in (150_000, 90_000, 60_000, 20_000):
        kept = saved(view, limit)
        sizes.append(len(json.dumps(kept, ensure_ascii=False).encode()))
        assert kept["header"]["note"].startswith("Saved without the pictures of the passes")
        assert bundle(kept)["text/plain"]
    assert sizes == sorted(sizes, reverse=True)
    assert saved(view, 0)["nodes"] == []
    assert saved(view, 0)["header"]["note"] == (
        "Saved without the pictures of the passes, WGSL, the graph by kernel and nodes: the "
        "program is large. Run the cell to see them."
    )
