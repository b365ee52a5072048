"""The examples in the docstrings of the IR, gradients, tensors and layers run as they stand."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

FLOORS = ["meganeura.ir", "meganeura.autodiff", "meganeura.tensor", "meganeura.nn"]


def modules() -> list[str]:
    names = ["meganeura", *FLOORS]
    for floor in FLOORS:
        package = importlib.import_module(floor)
        names += [m.name for m in pkgutil.walk_packages(package.__path__, floor + ".")]
    return names


@pytest.mark.parametrize("name", modules())
def test_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0
