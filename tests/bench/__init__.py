"""Measurements. Each prints its row; the tests next to them assert only wide ratios."""
