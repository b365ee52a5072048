"""Reverse mode: a table of gradient rules, and the pass that applies them."""

from meganeura.autodiff.reverse import backward
from meganeura.autodiff.rules import EXEMPT, RULES

__all__ = ["EXEMPT", "RULES", "backward"]
