"""Segments: partial aggregates in columnar files. Written by tasks, read by merges."""

from __future__ import annotations
