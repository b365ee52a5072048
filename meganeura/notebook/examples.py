"""Cells to start from; `%meganeura examples NAME` puts one into the next cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Example:
    """One cell: what it shows, and its text."""

    summary: str
    text: str


EXAMPLES: Mapping[str, Example] = {
    "digits": Example(
        "load scikit-learn's handwritten digits",
        """import meganeura as mg

digits = mg.data.digits(seed=0)
""",
    ),
    "softmax": Example(
        "one linear layer: the smallest classifier",
        """%%meganeura compile -o softmax
x = mg.input("x", (128, 64))
y = mg.input("y", (128,), mg.i32)
logits = mg.nn.linear(x, 10, name="out")
mg.cross_entropy(logits, y).named("loss"), logits.named("logits")
""",
    ),
    "mlp": Example(
        "two linear layers on 8x8 digits",
        """%%meganeura compile -o mlp
x = mg.input("x", (128, 64))
y = mg.input("y", (128,), mg.i32)
h = mg.relu(mg.nn.linear(x, 64, name="hidden"))
logits = mg.nn.linear(h, 10, name="out")
mg.cross_entropy(logits, y).named("loss"), logits.named("logits")
""",
    ),
    "cnn": Example(
        "two convolutions on 8x8 digits",
        """%%meganeura compile -o cnn
x = mg.input("x", (128, 1, 8, 8))
y = mg.input("y", (128,), mg.i32)
h = mg.max_pool2d(mg.relu(mg.nn.conv2d(x, 32, 3, padding=1, name="conv1")), 2)
h = mg.max_pool2d(mg.relu(mg.nn.conv2d(h, 64, 3, padding=1, name="conv2")), 2)
logits = mg.nn.linear(h.reshape(128, 256), 10, name="out")
mg.cross_entropy(logits, y).named("loss"), logits.named("logits")
""",
    ),
    "train": Example(
        "train the MLP for 400 steps",
        """%%meganeura train mlp --loss loss --steps 400 --optimizer adamw --lr 3e-3 -o run
mg.data.batches(digits.train, 128, seed=0)
""",
    ),
    "profile": Example("time every kernel of the MLP", "%meganeura profile mlp --steps 50\n"),
}


def list_text() -> str:
    """The examples, one a line."""
    rows = [f"  {name:<9} {example.summary}" for name, example in EXAMPLES.items()]
    return "\n".join(["Put one into the next cell with %meganeura examples NAME:", "", *rows])
