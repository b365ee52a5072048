"""The static SVG: well-formed, self-contained, described, and every text as text."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from meganeura.notebook.svg import description, program_svg

FIXTURE = Path(__file__).parents[2] / "fixtures" / "mlp_program.json"
NS = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def view() -> dict[str, Any]:
    return copy.deepcopy(json.loads(FIXTURE.read_text(encoding="utf-8")))


def texts(svg: str) -> list[str]:
    return ["".join(t.itertext()) for t in ElementTree.fromstring(svg).iter(f"{NS}text")]


def test_title_is_the_caption_and_the_description_names_every_kernel(view: dict[str, Any]) -> None:
    root = ElementTree.fromstring(program_svg(view))
    title, desc = root.find(f"{NS}title"), root.find(f"{NS}desc")
    assert title is not None and title.text == view["caption"]
    assert desc is not None and desc.text == description(view)
    assert all(f"{k['id']}, {k['label']}" in description(view) for k in view["kernels"])
    assert texts(program_svg(view))[-1] == view["caption"]


def test_every_kernel_and_every_node_is_drawn(view: dict[str, Any]) -> None:
    drawn = texts(program_svg(view))
    assert {k["id"] for k in view["kernels"]} <= set(drawn)
    assert {"relu", "log +", "pick"} <= set(drawn)


def test_nothing_is_loaded_and_nothing_runs(view: dict[str, Any]) -> None:
    svg = program_svg(view)
    assert "href" not in svg and "<script" not in svg and "<style" not in svg
    assert svg.count("http") == 1  # the namespace


@pytest.mark.parametrize(
    "name",
    ["<script>alert(1)</script>", "]]>&amp;\"'", "梯度", "مرحبا", "x" * 10_000, "a\x00\x1b\ud800b"],
)
def test_names_are_text(view: dict[str, Any], name: str) -> None:
    for box in view["pictures"]["kernel"]["boxes"]:
        box["title"] = box["subtitle"] = box["note"] = name
        for item in box["items"]:
            item["text"] = name
    view["caption"] = name
    svg = program_svg(view)
    assert "<script" not in svg
    clean = "".join("\ufffd" if c in "\x00\x1b\ud800" else c for c in name)
    assert texts(svg)[-1] == clean


def test_a_large_program_is_drawn_by_scope(view: dict[str, Any]) -> None:
    del view["pictures"]["kernel"]
    assert "k0  matmul + bias + relu" in " ".join(texts(program_svg(view)))
