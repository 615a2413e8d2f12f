"""The records that benchmarks read: files, traces, captures."""

from __future__ import annotations
