"""Compiled loops over captures: records, headers, fields."""

from __future__ import annotations
