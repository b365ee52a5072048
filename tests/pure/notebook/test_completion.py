"""What the completion offers on a magic's line."""

from __future__ import annotations

import pytest

from meganeura.notebook.completion import Names, suggest

NAMES = Names(
    programs=("mlp", "cnn"),
    outputs={"mlp": ("loss", "logits"), "cnn": ("error",)},
    explainable=("k0", "logits"),
    rules=("fold", "factor"),
)


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("%%meganeura tr", ["train"]),
        ("%meganeura d", ["devices", "doctor"]),
        ("%%meganeura train ml", ["mlp"]),
        ("%%meganeura train mlp --lo", ["--loss"]),
        ("%%meganeura train mlp --loss ", ["loss", "logits"]),
        ("%%meganeura train cnn --loss ", ["error"]),
        ("%%meganeura train --loss l", ["logits", "loss"]),
        ("%%meganeura train mlp --optimizer ada", ["adamw", "adam"]),
        ("%%meganeura train mlp --schedule c", ["constant", "cosine"]),
        ("%%meganeura compile --device ", ["gpu", "numpy"]),
        ("%%meganeura compile --rules-off f", ["fold", "factor"]),
        ("%%meganeura compile --no-", ["--no-fuse", "--no-rewrite", "--no-alias"]),
        ("%%meganeura compile --no-fuse --no-", ["--no-rewrite", "--no-alias"]),
        ("%meganeura explain k", ["k0"]),
        ("%meganeura examples m", ["mlp"]),
        ("%meganeura profile --steps 5 c", ["cnn"]),
        ("%meganeura nonsense x", []),
        ("  %meganeura profile m", ["mlp"]),
    ],
)
def test_suggestions(before: str, expected: list[str]) -> None:
    found = suggest(before, NAMES)
    assert found is not None
    assert [item.text for item in found] == expected


@pytest.mark.parametrize("before", ["mg.relu", "%%time", "%meganeura", "%%meganeuraX tr", ""])
def test_other_lines_are_left_to_others(before: str) -> None:
    assert suggest(before, NAMES) is None
