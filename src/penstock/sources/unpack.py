"""Unpacks compressed files into a cache folder; from there they are read like any file.

A task cannot start in the middle of a compressed stream, so each file is unpacked once. The unpacked file's name is a
digest of path, size and time of the original: other processes and runs find it again, and a task on another machine
makes its own. The file appears when it is whole, so that nothing is read of a damaged one.

Text is known to be compressed by its name, captures by their first bytes (`by_content`), as people expect of either.
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
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO, Protocol, cast

import pyarrow as pa

from penstock.errors import PenstockError, RunError, SourceError, why
from penstock.sources.files import regular, unreadable

PIECE = 1 << 20
# A password that is asked for is a RuntimeError of zipfile.
DAMAGE = (EOFError, zlib.error, lzma.LZMAError, OSError, ValueError, zipfile.BadZipFile, RuntimeError)


class Readable(Protocol):
    def read(self, size: int) -> bytes: ...


def _zstd(file: BinaryIO) -> Readable:
    stream: Readable = pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd")
    return stream


Opener = Callable[[BinaryIO], Readable]
OPENERS: dict[str, Opener] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file),
    ".xz": lzma.LZMAFile,
    ".zst": _zstd,
    ".bz2": bz2.BZ2File,
}
MAGICS = {b"\x1f\x8b": ".gz", b"\xfd7zXZ\x00": ".xz", b"\x28\xb5\x2f\xfd": ".zst", b"BZh": ".bz2"}
ARCHIVE = (b"PK\x03\x04", b"PK\x05\x06")


def by_content(head: bytes) -> Opener | None:
    """How to open a file that begins so; None where it is not compressed."""
    return next((OPENERS[suffix] for magic, suffix in MAGICS.items() if head.startswith(magic)), None)


def members(path: str) -> list[str]:
    """Files in a zip archive, in name order, without those that systems add."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [info.filename for info in archive.infolist() if not info.is_dir()]
    except OSError as error:
        raise unreadable(path, error) from error
    except zipfile.BadZipFile as error:
        raise _damaged(path, error, 0, 0) from error
    return sorted(name for name in names if not any(part.startswith((".", "__MACOSX")) for part in name.split("/")))


def member_opener(member: str) -> Opener:
    """Opens one file of an archive, itself compressed or not."""

    def opened(file: BinaryIO) -> Readable:
        archive = zipfile.ZipFile(file)
        with archive.open(member) as probe:
            inner = by_content(probe.read(8))
        stream = archive.open(member)
        return stream if inner is None else inner(cast("BinaryIO", stream))

    return opened


def with_packed(suffixes: tuple[str, ...]) -> tuple[str, ...]:
    """These suffixes, and each with that of a compression after it."""
    return suffixes + tuple(f"{suffix}{packed}" for suffix in suffixes for packed in OPENERS)


def packed(path: str) -> bool:
    return by_name(path) is not None


def head(path: str, size: int) -> tuple[bytes, bool]:
    """(first bytes of the text, whether that is all of it), without unpacking the rest."""
    return begin(path, size, by_name(path))


def by_name(path: str) -> Opener | None:
    return OPENERS.get(os.path.splitext(path)[1].lower())


def begin(path: str, size: int, opener: Opener | None) -> tuple[bytes, bool]:
    """The same of a file that is opened so."""
    regular(path)
    try:
        with open(path, "rb") as file:
            text = _read_up_to(_opened(file, opener), size + 1)
    except OSError as error:
        if error.errno is not None:
            raise unreadable(path, error) from error
        raise _damaged(path, error, 0, 0) from error
    except DAMAGE as error:
        raise _damaged(path, error, 0, 0) from error
    return text[:size], len(text) <= size


def _opened(file: BinaryIO, opener: Opener | None) -> Readable:
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
    opener = by_name(path)
    return path if opener is None else unpacked(path, cache, opener)


def unpacked(path: str, cache: str, opener: Opener, member: str = "") -> str:
    """Path of the unpacked copy of a file, or of a member of an archive."""
    found = regular(path)
    identity = f"{path}\n{found.st_size}\n{found.st_mtime_ns}\n{member}"
    folder = cache or _own_folder()
    name = hashlib.blake2b(identity.encode(), digest_size=16).hexdigest()
    target = os.path.join(folder, f"{os.path.basename(member or os.path.splitext(path)[0])}-{name}")
    if not os.path.exists(target):
        aside = f"{target}.{uuid.uuid4().hex[:8]}.tmp"
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            _unpack(path, aside, opener)
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


def _unpack(path: str, aside: str, opener: Opener) -> None:
    done = 0
    with _open(path) as file, open(aside, "wb") as out:
        try:
            stream = _opened(file, opener)
        except DAMAGE as error:
            raise _damaged(path, error, 0, 0) from error
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
