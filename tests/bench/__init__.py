"""Measurements. Each prints its row; the tests beside them assert wide ratios only."""
