"""Expressions on columns: operands, functions, casts, times."""

from __future__ import annotations
