"""Compiled loops over text: CSV, JSON, times."""

from __future__ import annotations
