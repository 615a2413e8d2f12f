"""Standard input as a source: `stdin:`, or `stdin:csv` where its first bytes do not say what it is.

It is copied into a temporary file, which can be read again and by several tasks, and goes with the process.
"""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from penstock.errors import SourceError
from penstock.logical.query import Field
from penstock.sources.base import Source

# First bytes of kinds of files; compressed ones must be named.
MAGIC = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",  # a stream of Arrow's
    b"\xd4\xc3\xb2\xa1": "pcap",
    b"\xa1\xb2\xc3\xd4": "pcap",
    b"\x4d\x3c\xb2\xa1": "pcap",
    b"\xa1\xb2\x3c\x4d": "pcap",
    b"\x0a\x0d\x0d\x0a": "pcap",
}
COMPRESSED = {b"\x1f\x8b": ".gz", b"\xfd7zX": ".xz", b"\x28\xb5\x2f\xfd": ".zst", b"BZh": ".bz2"}


def open_stdin(kind: str, options: Mapping[str, str], declared: tuple[Field, ...] | None) -> Source:
    """The source of that kind over a copy of standard input."""
    from penstock.sources.registry import open_source

    path = copied()
    with open(path, "rb") as file:
        start = file.read(4096)
    if not start and not kind:
        raise SourceError("standard input is empty", "pipe a file into it, or name one in FROM")
    return open_source(f"{kind or kind_of(start)}:{path}", options, declared)


@cache
def copied() -> Path:
    """Standard input in a file: it can be read only once."""
    if sys.stdin is None or sys.stdin.isatty():
        raise SourceError("standard input is a terminal", "pipe a file into it, or name one in FROM")
    folder = Path(tempfile.mkdtemp(prefix="penstock-stdin-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with open(folder / "stdin", "wb+") as file:
        shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
        file.seek(0)
        start = file.read(8)
    suffix = next((suffix for magic, suffix in COMPRESSED.items() if start.startswith(magic)), "")
    return (folder / "stdin").rename(folder / f"stdin{suffix}")


def kind_of(start: bytes) -> str:
    """What a file is by its first bytes; text that is not JSON is taken for CSV.

    >>> kind_of(b"PAR1..."), kind_of(b' {"a": 1}'), kind_of(b"a,b")
    ('parquet', 'json', 'csv')
    """
    for magic, kind in MAGIC.items():
        if start.startswith(magic):
            return kind
    if any(start.startswith(magic) for magic in COMPRESSED):
        raise SourceError(
            "standard input is compressed: it does not show what it is", "say it: FROM 'csv:-', 'pcap:-' or 'json:-'"
        )
    return "json" if start.lstrip().startswith(b"{") else "csv"
