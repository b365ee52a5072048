"""The examples in the docstrings run."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["cleanup", "cost", "equation"])
def test_examples(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"meganeura.rewrite.{name}"))
    assert found.attempted > 0
    assert found.failed == 0
