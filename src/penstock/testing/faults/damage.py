"""Damage to files: flipped bytes, cut ends, zeroed pages, files that are gone; seeded, and undone if asked.

targets (files of a run, by kind) ──► ways (all damages of a file) ──► spoil, or `damaged` for a while
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from penstock.state import manifest as manifests
from penstock.testing.faults.runs import Launch

PAGE = 4096
KINDS = ("segment", "manifest", "version", "identity", "spark", "decision", "result")


@dataclass(frozen=True)
class Damage:
    """What becomes of a file's bytes; None: the file is gone."""

    name: str
    apply: Callable[[bytes], bytes | None]


def flip(place: int, mask: int = 0x10) -> Damage:
    """Bits of one byte, counted from the end where negative."""
    return Damage(f"byte {place} flipped", lambda data: _with(data, place, bytes([data[place] ^ mask])))


def cut(length: int) -> Damage:
    """Only the first `length` bytes are left."""
    return Damage(f"cut off at byte {length}", lambda data: data[:length])


def zeroed(start: int, length: int = PAGE) -> Damage:
    """A page that was never written, as after a power failure."""
    return Damage(f"zeroed from byte {start}", lambda data: _with(data, start, bytes(min(length, len(data) - start))))


def gone() -> Damage:
    return Damage("gone", lambda data: None)


def _with(data: bytes, place: int, new: bytes) -> bytes:
    place %= len(data)
    return data[:place] + new + data[place + len(new) :]


def ways(size: int, flips: int, choose: random.Random) -> Iterator[Damage]:
    """Ways to damage a file of this size: seeded flips, a zeroed page, cuts, and losing it."""
    yield from (flip(place) for place in sorted(choose.sample(range(size), min(flips, size))))
    yield from (cut(length) for length in (0, size // 2, size - 1))
    yield zeroed(choose.randrange(size) // PAGE * PAGE)
    yield gone()


def spoil(path: Path, damage: Damage) -> None:
    """Damage a file for good."""
    data = damage.apply(path.read_bytes())
    if data is None:
        path.unlink()
    else:
        path.write_bytes(data)


@contextmanager
def damaged(path: Path, damage: Damage) -> Iterator[None]:
    """Damage a file for a while."""
    data = path.read_bytes()
    spoil(path, damage)
    try:
        yield
    finally:
        path.write_bytes(data)


def targets(launch: Launch, kind: str) -> list[Path]:
    """Files of a run that was stopped or killed, of one of `KINDS`; of segments only those that are still needed."""
    checkpoint = launch.checkpoint
    if kind == "segment":
        newest = manifests.newest(checkpoint)
        return [checkpoint / "segments" / entry.path for entry in newest.segments] if newest else []
    found = {
        "manifest": (checkpoint / manifests.FOLDER).glob("[0-9]*.json"),
        "version": (checkpoint / "versions").glob("[0-9]*.json"),
        "identity": checkpoint.glob("app.json"),
        "decision": (checkpoint / "decisions").glob("[0-9]*.json"),
        "spark": (checkpoint / "spark").rglob("[0-9]*"),
        "result": launch.output.glob("*/*.*"),
    }
    if kind not in found:
        raise ValueError(f"there are no files of kind '{kind}': one of {', '.join(KINDS)}")
    return sorted(path for path in found[kind] if not path.name.startswith((".", "_")))
