"""Versions of an app: the queries and plans that batches run with, as files of the checkpoint.

    versions/00000000.json    the first app;  00000001.json    after queries were added or dropped;  …

The offset of a batch names its version, so a replay runs what was decided, whatever was changed since.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from penstock.errors import StateError
from penstock.logical.query import QuerySet
from penstock.sharing.options import Planning
from penstock.sharing.plan import SharedPlan
from penstock.state import checked
from penstock.state.files import put_if_absent
from penstock.state.garbage import VERSIONS

FOLDER = VERSIONS


@dataclass(frozen=True)
class Version:
    """An app with a plan for every stream, and for every query whose results are read; `outputs` says where
    results go, `retired` are names that dropped queries had, `planning` what the plans were asked to be like."""

    number: int
    app: QuerySet
    plans: Mapping[str, SharedPlan]
    outputs: Mapping[str, str]
    retired: frozenset[str] = frozenset()
    planning: Planning = field(default_factory=Planning)


def store(checkpoint: Path, version: Version) -> None:
    if not put_if_absent(path_of(checkpoint, version.number), checked.dump(version)):
        raise StateError(f"version {version.number} of the app in {checkpoint} was written by another run")


@lru_cache(maxsize=8)
def load(checkpoint: Path, number: int) -> Version:
    """A version never changes once it is written."""
    path = path_of(checkpoint, number)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise StateError(f"version {number} of the app is missing in {checkpoint}", "restore it from a copy") from None
    return checked.parse(data, Version, path, "version")


def newest(checkpoint: Path) -> int | None:
    numbers = [int(path.stem) for path in (checkpoint / FOLDER).glob("[0-9]*.json")]
    return max(numbers, default=None)


def path_of(checkpoint: Path, number: int) -> Path:
    return checkpoint / FOLDER / f"{number:08d}.json"
