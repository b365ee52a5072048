"""docs/rules.md, written from the rules' own text."""

from __future__ import annotations

import sys
from itertools import groupby

from meganeura.rewrite.rule import Rule
from meganeura.rewrite.rules import RULES

HEAD = """# The rewrite rules

Each line is one rule of `meganeura/rewrite/rules/`, used from left to right by equality saturation:
a match adds the right side to the e-graph beside the left, and the cost decides afterwards which
stays. `p`, `q` and so on are attributes (shapes, axes), `c` and `d` numbers known at compile time;
`expand` repeats elements, as broadcasting does. A rule is switched off by its name:
`mg.compile(..., rules_off=frozenset({"div_number"}))`.

This page is written by `python -m meganeura.rewrite.document`; a test compares the two.
"""


USES = {
    "always": "",
    "inference": " In training only with a cost of the caller's.",
    "cost": " Only with a cost of the caller's.",
}


def rules_page() -> str:
    """The page as Markdown."""
    parts = [HEAD]
    for group, members in groupby(RULES, key=lambda r: r.group):
        summary = (sys.modules[f"meganeura.rewrite.rules.{group}"].__doc__ or "").splitlines()[0]
        parts.append(f"\n## {group}\n\n{summary}\n\n")
        parts.append("| rule | says | equation |\n|---|---|---|\n")
        parts.extend(_row(rule) for rule in members)
    return "".join(parts)


def _row(rule: Rule) -> str:
    condition = f" Only where {rule.where.text}." if rule.where.text else ""
    condition += USES[rule.use]
    equation = rule.equation.replace("|", "\\|")
    return f"| `{rule.name}` | {rule.english}{condition} | `{equation}` |\n"


if __name__ == "__main__":
    sys.stdout.write(rules_page())
