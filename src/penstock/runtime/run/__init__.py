"""A run: start, what may change, progress, summary."""

from __future__ import annotations
