"""Compiled loops over packed keys: probe, fold, pack, order, merge."""

from __future__ import annotations
