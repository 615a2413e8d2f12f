"""How a checkpoint keeps tables: CHECKPOINT/tables/DIGEST.arrow, each content once.

A digest is of what a table holds. A file is as good as its digest: one that was cut short by a kill is written again.
Contents that others will replace have a mark before it (`state.garbage.VERSION`).
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc as ipc
import xxhash

from penstock.errors import RunError, why
from penstock.state.garbage import VERSION, table_path

BATCH_ROWS = 65_536


def place_of(checkpoint: Path, digest: str) -> Path:
    """Where a checkpoint keeps the table of this content."""
    return table_path(checkpoint.absolute(), digest)


def keep(checkpoint: Path, table: pa.Table, digest: str) -> Path:
    """Write the table, unless it is there."""
    path = place_of(checkpoint, digest)
    if kept(path, digest) is None:
        _write(table, path)
    return path


def kept(path: Path, digest: str) -> pa.Table | None:
    """The table of a file, mapped into memory; None if the file is missing, or is not what its name says: a run that
    was killed may have left anything."""
    try:
        table = ipc.open_file(pa.memory_map(str(path))).read_all()
        return table if content_digest(table) == digest.removeprefix(VERSION) else None
    except (pa.ArrowException, OSError, ValueError):
        return None


def content_digest(table: pa.Table) -> str:
    """Of what a table holds: the same however it is cut into pieces, and whatever stands under its NULLs."""
    told = [(field.name, str(field.type), field.metadata, _column_digest(table[field.name])) for field in table.schema]
    return xxhash.xxh3_128_hexdigest(repr((table.num_rows, told)).encode())


def _column_digest(column: pa.ChunkedArray) -> str:
    there, values, lengths = xxhash.xxh3_128(), xxhash.xxh3_128(), xxhash.xxh3_128()
    for chunk in column.chunks:
        plain = chunk.dictionary_decode() if pa.types.is_dictionary(chunk.type) else chunk
        there.update(plain.is_valid().to_numpy(zero_copy_only=False).tobytes())
        if pa.types.is_string(plain.type):
            text = pc.fill_null(plain, "").cast(pa.large_binary())
            offsets = np.frombuffer(text.buffers()[1], np.int64)[text.offset : text.offset + len(text) + 1]
            lengths.update(np.diff(offsets).tobytes())
            data = text.buffers()[2]
            values.update(memoryview(data)[offsets[0] : offsets[-1]] if data is not None and len(text) else b"")
        elif pa.types.is_boolean(plain.type):
            values.update(pc.fill_null(plain, False).to_numpy(zero_copy_only=False).tobytes())
        else:
            filled, width = pc.fill_null(plain, pa.scalar(0, plain.type)), plain.type.bit_width // 8
            begin, end = filled.offset * width, (filled.offset + len(filled)) * width
            values.update(memoryview(filled.buffers()[1])[begin:end])
    return f"{there.hexdigest()} {values.hexdigest()} {lengths.hexdigest()}"


def _write(table: pa.Table, path: Path) -> None:
    """The file appears when it is whole."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(exist_ok=True)
        with open(aside, "wb") as file:
            options = ipc.IpcWriteOptions(unify_dictionaries=True)
            with ipc.new_file(file, table.schema, options=options) as writer:
                writer.write_table(table, max_chunksize=BATCH_ROWS)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except OSError as error:
        raise RunError(f"cannot keep a table in {path.parent}: {why(error)}", "make room, then run again") from error
    finally:
        with suppress(OSError):
            aside.unlink()
