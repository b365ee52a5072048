"""The rules, by subject: each file is a table of equations under a line of English."""

from meganeura.rewrite.rules.algebra import ALGEBRA

RULES = (*ALGEBRA,)
"""All rules, in the order in which they are tried and documented."""
