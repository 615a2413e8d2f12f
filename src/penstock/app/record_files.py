"""Records of a source as one file, in the format that its name says: for `penstock generate KIND -o FILE`. An auction
house is three files in a folder.

CSV and JSON are written as the sinks of that name write results; a capture has packets without payload.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from penstock.errors import ConfigError
from penstock.kernels import inet
from penstock.logical.types import Kind
from penstock.sinks.csv import as_text
from penstock.sinks.json import write_json
from penstock.sources.base import Source, logical_type
from penstock.sources.capture.write import file_header, frames
from penstock.sources.generate.auction import STREAMS
from penstock.sources.parquet.write import Progress, refuse_folder, tables, whole_file, write_parquet

Write = Callable[[Source, Path, Progress], None]
PACKED = ".gz"
HOUSE_FORMATS = ("parquet", "csv", "json")


def writer_of(path: Path) -> Write:
    """What writes a file of this name; other names are refused."""
    refuse_folder(path)
    name = path.name.lower()
    suffix = Path(name.removesuffix(PACKED)).suffix
    if suffix not in FORMATS or (name.endswith(PACKED) and suffix == ".parquet"):
        raise ConfigError(f"cannot write '{path}': no format has that ending", f"its name must end in {ENDINGS}")
    return FORMATS[suffix]


def one_file(path: Path, form: str | None) -> Path:
    """The file to write; its name says its format."""
    if form is not None:
        raise ConfigError("--format is for auction, which writes three files", f"name a file that ends in {ENDINGS}")
    return path


def house_files(folder: Path, form: str | None) -> dict[str, Path]:
    """The file of each stream of an auction house."""
    if Path(folder.name.lower().removesuffix(PACKED)).suffix in FORMATS:
        raise ConfigError(
            f"cannot write '{folder}': auction is three files", "name a folder, and say --format csv, json or parquet"
        )
    suffix = form or HOUSE_FORMATS[0]
    if suffix not in HOUSE_FORMATS:
        raise ConfigError(f"unknown format '{form}'", f"one of {', '.join(HOUSE_FORMATS)}")
    return {stream: folder / f"{stream}.{suffix}" for stream in STREAMS}


def _parquet(source: Source, path: Path, progress: Progress) -> None:
    write_parquet(source, path, progress=progress)


def _csv(source: Source, path: Path, progress: Progress) -> None:
    schema = as_text(_readable(source.schema().empty_table())).schema
    with _opened(path) as file, pa.csv.CSVWriter(file, schema) as writer:
        for table in tables(source, progress=progress):
            writer.write_table(as_text(_readable(table)))


def _json(source: Source, path: Path, progress: Progress) -> None:
    with _opened(path) as file:
        for table in tables(source, progress=progress):
            write_json(_readable(table), file)


def _pcap(source: Source, path: Path, progress: Progress) -> None:
    with _opened(path) as file:
        file.write(file_header())
        for table in tables(source, progress=progress):
            file.write(frames(table))


def _readable(table: pa.Table) -> pa.Table:
    """The same records, with addresses as text: a source may have them as numbers."""
    for place, field in enumerate(table.schema):
        kind = logical_type(field)
        if kind is not None and kind.kind is Kind.INET and pa.types.is_integer(field.type):
            table = table.set_column(place, field.name, _addresses(table.column(place)))
    return table


def _addresses(numbers: pa.ChunkedArray) -> pa.Array:
    """Each printed once."""
    each = numbers.combine_chunks().cast(pa.int64()).dictionary_encode()
    low = each.dictionary.to_numpy().view(np.uint64)
    starts, text = inet.to_text(np.full(len(low), 4, np.uint8), np.zeros(len(low), np.uint64), low)
    buffers = [None, pa.py_buffer(starts), pa.py_buffer(text)]
    words = pa.Array.from_buffers(pa.large_string(), len(low), buffers).cast(pa.string())
    return pa.DictionaryArray.from_arrays(each.indices, words)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """A file to write to, packed if its name says so."""
    with whole_file(path) as aside, pa.OSFile(str(aside), "wb") as plain:
        if not path.name.lower().endswith(PACKED):
            yield plain
            return
        with pa.CompressedOutputStream(plain, "gzip") as packed:
            yield packed


FORMATS: dict[str, Write] = {".parquet": _parquet, ".csv": _csv, ".json": _json, ".jsonl": _json, ".pcap": _pcap}
ENDINGS = ".parquet, .csv, .json, .jsonl or .pcap; all but Parquet also in .gz"
