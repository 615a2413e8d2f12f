"""Captures as they lie in files: plain, compressed, or several in a zip archive.

path ──► captures_in (its first bytes decide) ──► StoredCapture ──► capture_form: what its own first bytes say
                                                               └──► text: a file to walk over, unpacked if need be
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import SourceError
from penstock.sources.capture.walk import HEAD, MAGICS, PCAPNG, CaptureForm, form_of
from penstock.sources.counted import Unfinished
from penstock.sources.unpack import ARCHIVE, Opener, begin, by_content, member_opener, members, unpacked


@dataclass(frozen=True)
class StoredCapture:
    """A capture as it lies in a file: `opener` unpacks it, `member` is its name in an archive."""

    path: str
    opener: Opener | None = None
    member: str = ""

    @property
    def name(self) -> str:
        return f"{self.path}/{self.member}" if self.member else self.path

    def text(self, cache: str) -> str:
        return self.path if self.opener is None else unpacked(self.path, cache, self.opener, self.member)


def captures_in(path: str) -> list[StoredCapture]:
    """The captures in a file: one, or those of an archive."""
    first, _ = begin(path, HEAD, None)
    if not first.startswith(ARCHIVE):
        return [StoredCapture(path, by_content(first))]
    found = [StoredCapture(path, member_opener(name), name) for name in members(path)]
    if not found:
        raise SourceError(f"'{path}' is an archive without files", "put captures into it")
    return found


def capture_form(part: StoredCapture) -> CaptureForm:
    """How a capture is written; `Unfinished` if it has too few bytes to tell."""
    first, final = begin(part.path, HEAD, part.opener)
    if final and len(first) < HEAD and (not first or _could_become(first)):
        raise Unfinished(f"'{part.name}' has only {len(first)} bytes", "it is not yet a capture, or was cut short")
    return form_of(first, part.name)


def _could_become(first: bytes) -> bool:
    """Whether these bytes could become a capture."""
    return any(magic.startswith(first[: len(magic)]) for magic in (PCAPNG, *MAGICS))


def stored_capture(path: str, member: str) -> StoredCapture:
    return next(part for part in captures_in(path) if part.member == member)
