"""Compressed text: unpacked once, aside, into a cache folder, and then read like any file.

A compressed stream cannot be entered in the middle, so tasks could not read their splits of it. The unpacked file's
name is a digest of path, size and time of the original, so that it is found again by other processes and runs, and a
task on another machine makes its own. It appears when it is whole: what decodes before damage is never read.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import hashlib
import lzma
import os
import tempfile
import uuid
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO, Protocol

import pyarrow as pa

from penstock.errors import PenstockError, RunError, SourceError, why
from penstock.sources.files import regular, unreadable

PIECE = 1 << 20
DAMAGE = (EOFError, zlib.error, lzma.LZMAError, OSError, ValueError)


class Readable(Protocol):
    def read(self, size: int) -> bytes: ...


def _zstd(file: BinaryIO) -> Readable:
    stream: Readable = pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd")
    return stream


OPENERS: dict[str, Callable[[BinaryIO], Readable]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file),
    ".xz": lzma.LZMAFile,
    ".zst": _zstd,
    ".bz2": bz2.BZ2File,
}


def with_packed(suffixes: tuple[str, ...]) -> tuple[str, ...]:
    """These suffixes, and each with that of a compression after it."""
    return suffixes + tuple(f"{suffix}{packed}" for suffix in suffixes for packed in OPENERS)


def packed(path: str) -> bool:
    return os.path.splitext(path)[1].lower() in OPENERS


def head(path: str, size: int) -> tuple[bytes, bool]:
    """(first bytes of the text, whether that is all of it), without unpacking the rest."""
    regular(path)
    try:
        with open(path, "rb") as file:
            stream = _opened(path, file)
            text = _read_up_to(stream, size + 1)
    except OSError as error:
        if error.errno is not None:
            raise unreadable(path, error) from error
        raise _damaged(path, error, 0, 0) from error
    except DAMAGE as error:
        raise _damaged(path, error, 0, 0) from error
    return text[:size], len(text) <= size


def _opened(path: str, file: BinaryIO) -> Readable:
    opener = OPENERS.get(os.path.splitext(path)[1].lower())
    return file if opener is None or os.fstat(file.fileno()).st_size == 0 else opener(file)


def _read_up_to(stream: Readable, size: int) -> bytes:
    pieces: list[bytes] = []
    while size > 0:
        piece = stream.read(min(size, PIECE))
        if not piece:
            break
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def text_of(path: str, cache: str) -> str:
    """Path of the file's text: its own, or that of its unpacked copy, which is made if it is not there."""
    if not packed(path):
        return path
    found = regular(path)
    identity = f"{path}\n{found.st_size}\n{found.st_mtime_ns}"
    folder = cache or _own_folder()
    name = hashlib.blake2b(identity.encode(), digest_size=16).hexdigest()
    target = os.path.join(folder, f"{os.path.basename(os.path.splitext(path)[0])}-{name}")
    if not os.path.exists(target):
        aside = f"{target}.{uuid.uuid4().hex[:8]}.tmp"
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            _unpack(path, aside)
            os.replace(aside, target)
        except OSError as error:
            raise _no_room(path, folder, error) from error
        finally:
            with suppress(OSError):
                os.unlink(aside)
    return target


def _own_folder() -> str:
    """The default cache: in the folder for temporary files, of this user alone."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = os.path.join(tempfile.gettempdir(), f"penstock-unpacked-{user}")
    with suppress(FileNotFoundError):
        if hasattr(os, "getuid") and os.lstat(folder).st_uid != user:  # others may put any text there
            raise SourceError(f"'{folder}' belongs to another user", "say where to unpack: WITH (cache = '/folder')")
    return folder


def _unpack(path: str, aside: str) -> None:
    done = 0
    with _open(path) as file, open(aside, "wb") as out:
        stream = _opened(path, file)
        while True:
            try:
                piece = stream.read(PIECE)
            except DAMAGE as error:
                raise _damaged(path, error, file.tell(), done) from error
            if not piece:
                return
            out.write(piece)
            done += len(piece)


def _open(path: str) -> BinaryIO:
    try:
        return open(path, "rb")
    except OSError as error:
        raise unreadable(path, error) from error


def _damaged(path: str, error: BaseException, at: int, done: int) -> SourceError:
    fact = " ".join(str(error).split()).rstrip(".") or type(error).__name__
    where = f"near byte {at}, after {done} bytes of text" if at else "at its start"
    if isinstance(error, EOFError) or fact.startswith("Truncated"):
        where = f"near byte {os.path.getsize(path)}, its end"
    return SourceError(f"'{path}' is damaged {where}: {fact}", "restore the file; nothing of it was used")


def _no_room(path: str, folder: str, error: OSError) -> PenstockError:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    hint = "make room there" if full else "check the folder"
    return (RunError if full else SourceError)(
        f"cannot unpack '{path}' into '{folder}': {why(error)}",
        f"{hint}, or unpack elsewhere: WITH (cache = '/folder')",
    )
