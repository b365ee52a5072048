"""The rules, by subject: each file is a table of equations under a line of English."""

from meganeura.rewrite.rules.algebra import ALGEBRA
from meganeura.rewrite.rules.choices import CHOICES
from meganeura.rewrite.rules.convolutions import CONVOLUTIONS
from meganeura.rewrite.rules.powers import POWERS
from meganeura.rewrite.rules.products import PRODUCTS
from meganeura.rewrite.rules.reductions import REDUCTIONS
from meganeura.rewrite.rules.views import VIEWS

RULES = (*ALGEBRA, *POWERS, *CHOICES, *VIEWS, *REDUCTIONS, *PRODUCTS, *CONVOLUTIONS)
"""All rules, in the order in which they are tried and documented."""
