"""Rewriting by equality saturation: rules as equations, an e-graph that holds all they imply, a
cost that decides.
"""

from meganeura.rewrite.cleanup import simplify
from meganeura.rewrite.cost import default_cost
from meganeura.rewrite.run import rewrite
from meganeura.rewrite.saturate import Limits

__all__ = ["Limits", "default_cost", "rewrite", "simplify"]
