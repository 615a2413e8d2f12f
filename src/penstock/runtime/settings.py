"""Sizes that change speed and memory, never results."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TaskSettings:
    """Tuples of a chunk, rows of a fresh table, bytes of tables and dictionaries, slots of a segment."""

    chunk_rows: int = 32_768
    table_rows: int = 4_096
    task_memory: int = 112 << 20
    slots: int = 32
