"""`console:` prints each batch's rows as a table on the driver's standard output; at least once.

It shows the first 20 rows of a window, then how many more there are; `console:?rows=50` shows more. A task stages no
more rows than are shown, so that the driver never holds a large window. `write_to` sends the tables elsewhere:
`app.cli` keeps standard output free for `--json`.
"""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
import pyarrow as pa

from penstock.errors import RunError
from penstock.sinks.batches import BatchSink
from penstock.sinks.plain import check_text_types, decode, is_time, iso_times

if TYPE_CHECKING:  # tasks stage and do not print
    from rich.table import Table
    from rich.text import Text

ROWS = 20
WINDOW = ("window_start", "window_end")
WIDTH = 1000  # of a file: a table is as wide as it needs to be
# Strings of a stream may be anybody's: they must not be able to command a terminal.
CONTROLS = {code: f"\\x{code:02x}" for code in [*range(32), *range(127, 160)]} | {10: "\\n", 13: "\\r", 9: "\\t"}

_stream: IO[str] | None = None


def write_to(stream: IO[str] | None) -> None:
    """Print to this stream from now on; None is standard output."""
    global _stream
    _stream = stream


@dataclass(frozen=True)
class ConsoleSink(BatchSink):
    """Rows of one query for people to look at."""

    rows: int = ROWS

    def __post_init__(self) -> None:
        check_text_types(self.query, self.schema, "console:")

    def write(self, table: pa.Table, path: Path) -> None:
        with (
            pa.OSFile(str(path), "wb") as file,
            pa.ipc.new_file(file, (shown := heads(table, self.rows)).schema) as out,
        ):
            out.write_table(shown)

    def deliver(self, batch: int, staged: list[str]) -> None:
        stream = _stream or sys.stdout
        table = self._table(f"{self.query}, batch {batch}", [_read(path) for path in staged])
        try:
            stream.write(_rendered(table, shutil.get_terminal_size().columns if stream.isatty() else WIDTH))
            stream.flush()
        except (OSError, UnicodeError) as error:
            fact = f"cannot print the results of query '{self.query}': {error}"
            raise RunError(fact, "run again: the batch is printed again") from error

    def _table(self, title: str, parts: list[pa.Table]) -> Table:
        from rich.table import Table

        shown = Table(title=title, title_justify="left")
        names = self.schema.names
        for field in self.schema:
            number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
            shown.add_column(_printable(field.name), justify="right" if number else "left", overflow="fold")
        places = [names.index(name) for name in WINDOW if name in names]
        for key, cells, more in windows(parts, places, self.rows):
            for row in cells:
                shown.add_row(*map(_printable, row))
            if more:
                dots = [f"... {more} more" if i == 0 else "" for i in range(len(names))]
                for place, value in zip(places, key, strict=True):
                    dots[place] = dots[place] or value
                shown.add_row(*map(_printable, dots))
        return shown

    def place(self) -> str:
        return "console:"


def heads(table: pa.Table, limit: int) -> pa.Table:
    """The first rows of each window as text, and as last column how many rows the window has in this table."""
    keys = [
        np.unique(_numbers(table.column(name)), return_inverse=True)[1] for name in WINDOW if name in table.schema.names
    ]
    window = np.zeros(table.num_rows, np.int64)
    for key in keys:
        window = window * (int(key.max(initial=0)) + 1) + key
    _, window, counts = np.unique(window, return_inverse=True, return_counts=True)
    order = np.argsort(window, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    first = np.flatnonzero(rank < limit)
    columns = [_as_text(column.take(pa.array(first))) for column in table.columns]
    return pa.table([*columns, pa.array(counts[window[first]])], names=[*table.column_names, "rows"])


def windows(
    parts: list[pa.Table], places: list[int], limit: int
) -> Iterator[tuple[tuple[str, ...], list[list[str]], int]]:
    """Each window of staged parts in order: its key, the rows to show, and how many more there are."""
    rows: dict[tuple[str, ...], list[list[str]]] = {}
    totals: dict[tuple[str, ...], int] = {}
    for part in parts:
        seen = set()
        for *cells, count in zip(*(column.to_pylist() for column in part.columns), strict=True):
            key = tuple(cells[place] for place in places)
            rows.setdefault(key, []).append(cells)
            if key not in seen:
                totals[key] = totals.get(key, 0) + count
                seen.add(key)
    for key in sorted(rows):
        yield key, rows[key][:limit], max(0, totals[key] - limit)


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    text = decode(iso_times(column)) if is_time(column.type) else decode(column).cast(pa.string())
    return text.fill_null("NULL")


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    numbers: np.ndarray = decode(column).cast(pa.int64()).to_numpy()
    return numbers


def _rendered(table: Table, width: int) -> str:
    """As text: rich, if it wrote to the stream itself, would end the process at a broken pipe."""
    from rich.console import Console

    console = Console(file=io.StringIO(), width=width, highlight=False)
    with console.capture() as captured:
        console.print(table)
    return captured.get()


def _printable(text: str) -> Text:
    from rich.text import Text

    return Text(text.translate(CONTROLS))


def _read(path: str) -> pa.Table:
    with pa.OSFile(path) as file:
        return pa.ipc.open_file(file).read_all()
