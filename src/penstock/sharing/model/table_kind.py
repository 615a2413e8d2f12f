"""Kinds of tables, and which entry leaves one that has no room for a newcomer."""

from __future__ import annotations

DIRECT, EXACT = "direct", "exact"  # kinds of tables besides LRU
EVICT, KEEP, LRU = "evict", "keep", "lru"  # which entry leaves a table where there is no room for a newcomer
