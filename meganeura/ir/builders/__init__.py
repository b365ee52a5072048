"""The words of `meganeura.ir.build`, by kind: leaves, views, maps, sums."""
