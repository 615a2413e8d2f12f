"""Rows of queries for people and programs: a table on the terminal, CSV, JSON lines, Parquet; one file or one each."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from penstock.errors import ConfigError, why

if TYPE_CHECKING:
    import pyarrow as pa

TABLE, CSV, JSON, PARQUET = "table", "csv", "json", "parquet"
FORMATS = (TABLE, CSV, JSON, PARQUET)
SUFFIXES = {".csv": CSV, ".json": JSON, ".jsonl": JSON, ".ndjson": JSON, ".parquet": PARQUET, ".txt": TABLE}
MOST = 200  # rows of a table on the terminal

Writer = Callable[["dict[str, pa.Table]"], None]


def writer_of(form: str | None, output: Path | None, names: list[str]) -> Writer:
    """What writes the rows of these queries; what cannot be is refused before anything runs."""
    if form is not None and form not in FORMATS:
        raise ConfigError(f"--format {form} is not possible", f"use one of {', '.join(FORMATS)}")
    if output is None:
        return _to_standard_output(form)
    chosen = form or SUFFIXES.get(output.suffix.lower()) or (CSV if len(names) > 1 else None)
    if chosen is None:
        raise ConfigError(
            f"-o {output}: its name does not say the format", f"end it in {', '.join(SUFFIXES)}, or give --format"
        )
    if not output.absolute().parent.is_dir():
        raise ConfigError(f"-o {output}: there is no folder {output.absolute().parent}", "make it first")
    if len(names) == 1 and output.is_dir():
        raise ConfigError(f"-o {output}: that is a folder", "name a file in it")
    if len(names) > 1 and output.is_file():
        raise ConfigError(f"-o {output}: that is a file, and there are {len(names)} queries", "name a folder")
    return lambda tables: _to_files(tables, chosen, output)


def _to_standard_output(form: str | None) -> Writer:
    chosen = form or (TABLE if sys.stdout.isatty() else CSV)
    if chosen == PARQUET and sys.stdout.isatty():
        raise ConfigError("Parquet is not for a terminal", "give -o FILE, or another --format")

    def write(tables: dict[str, pa.Table]) -> None:
        for number, (name, table) in enumerate(tables.items()):
            if len(tables) > 1 and chosen in (TABLE, CSV):
                sys.stdout.write(("\n" if number else "") + (f"{name}\n" if chosen == TABLE else ""))
            sys.stdout.flush()
            _write(table, chosen, sys.stdout.buffer, MOST)

    return write


def _to_files(tables: dict[str, pa.Table], form: str, output: Path) -> None:
    try:
        if len(tables) > 1:
            output.mkdir(exist_ok=True)
        for name, table in tables.items():
            path = output if len(tables) == 1 else output / f"{name}.{'txt' if form == TABLE else form}"
            with open(path, "wb") as file:
                _write(table, form, file)
    except OSError as error:
        raise ConfigError(f"-o {error.filename or output}: {why(error)}", "choose another place") from error


def _write(table: pa.Table, form: str, file: BinaryIO, most: int | None = None) -> None:
    if form == TABLE:
        file.write(table_text(table, most).encode())
    elif form == CSV:
        import pyarrow.csv

        from penstock.sinks.csv import as_text

        pyarrow.csv.write_csv(as_text(table), file)
    elif form == JSON:
        from penstock.sinks.json import write_json

        write_json(table, file)
    else:
        import pyarrow.parquet

        pyarrow.parquet.write_table(table, file)
    file.flush()


def table_text(table: pa.Table, most: int | None = None) -> str:
    """Columns as wide as needed, numbers to the right; of many rows the first."""
    shown = table if most is None else table.slice(0, most)
    columns = [_cells(column) for column in shown.columns]
    numbers = [column.type in _numbers() for column in shown.columns]
    widths = [max(map(len, (name, *cells))) for name, cells in zip(shown.column_names, columns, strict=True)]
    lines = [_line(shown.column_names, widths, numbers), "  ".join("─" * width for width in widths)]
    lines += [_line(row, widths, numbers) for row in zip(*columns, strict=True)]
    if len(shown) < len(table):
        lines.append(f"... {len(table) - len(shown):,} more rows; --format csv or -o has all")
    elif not len(table):
        lines.append("(no rows)")
    return "\n".join(lines) + "\n"


def _line(cells: list[str] | tuple[str, ...], widths: list[int], numbers: list[bool]) -> str:
    placed = (c.rjust(w) if right else c.ljust(w) for c, w, right in zip(cells, widths, numbers, strict=True))
    return "  ".join(placed).rstrip()


def _cells(column: pa.ChunkedArray) -> list[str]:
    import pyarrow as pa

    from penstock.sinks.plain import is_time

    if is_time(column.type):
        return [
            "NULL" if value is None else value.replace(tzinfo=None).isoformat(" ", "auto")
            for value in column.to_pylist()
        ]
    if pa.types.is_floating(column.type):
        return ["NULL" if value is None else f"{value:.6g}" for value in column.to_pylist()]
    return ["NULL" if value is None else str(value) for value in column.to_pylist()]


def _numbers() -> frozenset[pa.DataType]:
    import pyarrow as pa

    return frozenset((pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float64()))
