"""Which Parquet files a path names, and what their footers say: the driver's half of `sources.parquet`.

    path ──► find_files ──► read_footer (each) ──► Footer: rows per row group, normalised schema, digest

Only footers are read here, never a data page, so opening a source costs milliseconds per file.
"""

from __future__ import annotations

import glob
import hashlib
import os
import stat
import struct
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import url2pathname

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.errors import SourceError
from penstock.sources.base import TYPE_KEY

MAGIC, ENCRYPTED_MAGIC = b"PAR1", b"PARE"
TAIL = 8  # footer length (4 bytes, little endian) and magic


@dataclass(frozen=True)
class Footer:
    """One file: `groups` are the row counts of its row groups, `digest` covers its size and footer bytes."""

    path: str
    groups: tuple[int, ...]
    schema: pa.Schema
    digest: str


def find_files(path: str) -> list[str]:
    """Absolute paths of the files that a file name, folder or glob means, in name order."""
    place = _local(path)
    if not path or path.endswith(":"):
        raise SourceError("no Parquet file given", "write parquet:FILE, parquet:FOLDER or parquet:FOLDER/*.parquet")
    if os.path.isfile(place):
        return [place]
    if os.path.isdir(place):
        return _in_folder(place)
    if glob.has_magic(place):
        found = sorted(p for p in glob.glob(place, recursive=True) if os.path.isfile(p))
        if not found:
            raise SourceError(f"no file matches '{path}'", f"the pattern was looked up as {place}")
        return found
    raise SourceError(f"no such file or folder: '{path}'", f"it was looked up as {place}")


def _local(path: str) -> str:
    if path.startswith("file:"):
        parts = urlparse(path)
        if parts.netloc not in ("", "localhost"):
            raise SourceError(f"'{path}' names another host", "write file:///folder/name.parquet")
        path = url2pathname(parts.path)
    return os.path.abspath(os.path.expanduser(path))


def _in_folder(folder: str) -> list[str]:
    try:
        names = sorted(n for n in os.listdir(folder) if n.endswith(".parquet") and not n.startswith("."))
    except OSError as error:
        raise SourceError(f"cannot list folder '{folder}': {error.strerror}", "check its permissions") from error
    found = [p for p in (os.path.join(folder, n) for n in names) if os.path.isfile(p)]
    if not found:
        raise SourceError(
            f"no *.parquet file in folder '{folder}'", f"files in folders below it are found by {folder}/**/*.parquet"
        )
    return found


def read_footer(path: str) -> Footer:
    """Check that the file is Parquet and take in its footer."""
    digest = _footer_digest(path)
    try:
        with pq.ParquetFile(path) as file:
            metadata, schema = file.metadata, plain_schema(file.schema_arrow)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise SourceError(f"cannot read the footer of '{path}': {first_line(error)}", "is the file damaged?") from error
    names = schema.names
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise SourceError(f"column '{twice[0]}' occurs twice in '{path}'", "columns need distinct names")
    groups = tuple(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))
    return Footer(path, groups, schema, digest)


def _footer_digest(path: str) -> str:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise SourceError(f"'{path}' is not a regular file", "a Parquet source is read more than once")
        size = os.path.getsize(path)
        with open(path, "rb") as file:
            file.seek(max(0, size - TAIL))
            tail = file.read(TAIL)
            length = struct.unpack("<I", tail[:4])[0] if len(tail) == TAIL else 0
            file.seek(max(0, size - TAIL - length))
            footer = file.read(length)
    except OSError as error:
        raise SourceError(f"cannot read '{path}': {error.strerror}", "check that it exists and may be read") from error
    if tail[4:] == ENCRYPTED_MAGIC:
        raise SourceError(f"'{path}' is an encrypted Parquet file", "decrypt it first")
    if tail[4:] != MAGIC or length + TAIL > size:
        raise SourceError(
            f"'{path}' is not a Parquet file, or was cut off",
            f"it has {size} bytes and does not end in a Parquet footer",
        )
    return hashlib.blake2b(struct.pack("<Q", size) + footer, digest_size=16).hexdigest()


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """What the engine sees: text of any Arrow layout is `string`; of the metadata only penstock's type stays."""
    return pa.schema([_plain_field(field) for field in schema])


def _plain_field(field: pa.Field) -> pa.Field:
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        kind = pa.string()
    marked = (field.metadata or {}).get(TYPE_KEY)
    return pa.field(field.name, kind, metadata={TYPE_KEY: marked} if marked else None)


def require_equal_schemas(footers: list[Footer]) -> None:
    """All files of a source have the columns of the first, in any order."""
    first, *others = footers
    for other in others:
        difference = _difference(first.schema, other.schema)
        if difference:
            raise SourceError(
                f"'{other.path}' differs from '{Path(first.path).name}': {difference}",
                "all files of one source need the same columns and types",
            )


def _difference(first: pa.Schema, other: pa.Schema) -> str:
    for field in first:
        if field.name not in other.names:
            return f"column '{field.name}' is missing"
        theirs = other.field(field.name)
        if theirs.type != field.type:
            return f"column '{field.name}' is {theirs.type}, not {field.type}"
        if (theirs.metadata or {}) != (field.metadata or {}):
            return f"column '{field.name}' is marked as an address in one of them only"
    extra = [name for name in other.names if name not in first.names]
    return f"it has another column '{extra[0]}'" if extra else ""


def first_line(error: BaseException) -> str:
    """The fact in a library's message, without its call trace."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(". ") if lines else type(error).__name__
