"""Which phantoms to keep: greedy choosers, exhaustive search, aggregate trees."""

from __future__ import annotations
