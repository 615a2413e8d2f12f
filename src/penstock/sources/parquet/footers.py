"""Reads what the footers of Parquet files say: the driver's half of `sources.parquet.source`.

    sources.files ──► read_footer (each) ──► Footer: rows per row group, normalised schema, digest

It never reads a data page, so opening a source costs milliseconds per file.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.errors import SourceError
from penstock.sources.base import TYPE_KEY
from penstock.sources.files import regular, unreadable

MAGIC, ENCRYPTED_MAGIC = b"PAR1", b"PARE"
RESTORE = "it is damaged: restore it, or leave it out"
TAIL = 8  # footer length (4 bytes, little endian) and magic


@dataclass(frozen=True)
class Footer:
    """One file: `groups` are the row counts of its row groups, `digest` covers its size and footer bytes."""

    path: str
    size: int
    groups: tuple[int, ...]
    schema: pa.Schema
    digest: str


def read_footer(path: str) -> Footer:
    """Check that the file is Parquet and take in its footer."""
    size, digest = footer_digest(path)
    try:
        with pq.ParquetFile(path) as file:
            metadata, schema = file.metadata, plain_schema(file.schema_arrow)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise SourceError(f"cannot read the footer of '{path}': {first_line(error)}", RESTORE) from error
    names = schema.names
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise SourceError(f"column '{twice[0]}' occurs twice in '{path}'", "columns need distinct names")
    groups = tuple(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))
    return Footer(path, size, groups, schema, digest)


def footer_digest(path: str) -> tuple[int, str]:
    """(size, digest) of a file that looks like Parquet."""
    size = regular(path).st_size
    try:
        with open(path, "rb") as file:
            file.seek(max(0, size - TAIL))
            tail = file.read(TAIL)
            length = struct.unpack("<I", tail[:4])[0] if len(tail) == TAIL else 0
            file.seek(max(0, size - TAIL - length))
            footer = file.read(length)
    except OSError as error:
        raise unreadable(path, error) from error
    if tail[4:] == ENCRYPTED_MAGIC:
        raise SourceError(f"'{path}' is an encrypted Parquet file", "decrypt it first")
    if tail[4:] != MAGIC or length + TAIL > size:
        raise SourceError(
            f"'{path}' is not a Parquet file, or was cut off: its {size} bytes do not end in a footer",
            "restore it, or leave it out; text is read by csv: and json:",
        )
    return size, hashlib.blake2b(struct.pack("<Q", size) + footer, digest_size=16).hexdigest()


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """What the engine sees: text of any Arrow layout is `string`; of the metadata only penstock's type stays."""
    return pa.schema([_plain_field(field) for field in schema])


def _plain_field(field: pa.Field) -> pa.Field:
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        kind = pa.string()
    marked = (field.metadata or {}).get(TYPE_KEY)
    return pa.field(field.name, kind, metadata={TYPE_KEY: marked} if marked else None)


class Described(Protocol):
    """A file, and the columns it has."""

    @property
    def path(self) -> str: ...

    @property
    def schema(self) -> pa.Schema: ...


def require_equal_schema(first: pa.Schema, first_name: str, other: Described) -> None:
    """All files of a source have the columns of the first, in any order."""
    difference = _difference(first, other.schema)
    if difference:
        raise SourceError(
            f"'{other.path}' differs from '{first_name}': {difference}",
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
