"""Values in SQL: operators, functions, casts, aggregates and literals, typed."""

from __future__ import annotations
