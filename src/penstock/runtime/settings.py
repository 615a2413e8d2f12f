"""Sizes that change speed and memory, never results: of a task (`TaskSettings`), and of a whole run (`RunSettings`)."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.sharing.options import Planning


@dataclass(frozen=True)
class TaskSettings:
    """Records of a chunk, rows of a fresh table, bytes of tables and dictionaries, slots of a segment."""

    chunk_rows: int = 65_536
    table_rows: int = 4_096
    task_memory: int = 256 << 20
    slots: int = 32


@dataclass(frozen=True)
class RunSettings:
    """Options of one run; none of them changes a result, but for `overload`, and that only in bursts."""

    checkpoint: str | None = None
    output: str = "penstock-out"
    overwrite: bool = False
    batch_rows: int = 4_000_000
    parallelism: int | None = None
    planning: Planning = field(default_factory=Planning)
    until: str = "end"
    overload: str = "triage"
    task: TaskSettings = field(default_factory=TaskSettings)
