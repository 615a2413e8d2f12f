"""`console:` shows the first rows of each window, once per batch unless a run is killed in between."""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.errors import ConfigError, RunError
from penstock.sinks import console
from penstock.sinks.base import Owner, Part
from penstock.sinks.console import ConsoleSink

TIME = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema([("s", pa.string()), ("n", pa.int64()), ("window_start", TIME), ("window_end", TIME)])
MINUTE = 60_000_000


def table(rows: list[tuple[str | None, int | None, int]]) -> pa.Table:
    """Rows of (string, number, window)."""
    strings, numbers, windows = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table(
        [
            pa.array(strings, pa.string()).dictionary_encode(),
            pa.array(numbers, pa.int64()),
            pa.array([w * MINUTE for w in windows], pa.int64()).cast(TIME),
            pa.array([(w + 1) * MINUTE for w in windows], pa.int64()).cast(TIME),
        ],
        names=SCHEMA.names,
    )


@pytest.fixture
def shown() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    console.write_to(stream)
    yield stream
    console.write_to(None)


@pytest.fixture
def sink(tmp_path: Path) -> ConsoleSink:
    made = ConsoleSink("talkers", str(tmp_path / "staged"), SCHEMA, rows=2)
    made.prepare(Owner("a", str(tmp_path)), overwrite=False)
    return made


def staged(sink: ConsoleSink, batch: int, *tables: pa.Table) -> list[Part]:
    task = pickle.loads(pickle.dumps(sink))
    found = [task.stage(rows, batch, part, "x") for part, rows in enumerate(tables)]
    return [(aside, final) for aside, final in found]


def test_a_batch_is_printed_to_standard_output(sink: ConsoleSink, capsys: pytest.CaptureFixture[str]) -> None:
    sink.publish(0, staged(sink, 0, table([("a", 1, 0), (None, None, 0)])))
    out = capsys.readouterr().out
    assert "talkers, batch 0" in out
    assert "NULL" in out
    assert "1970-01-01T00:01:00.000000Z" in out


def test_windows_are_cut_after_some_rows_over_all_parts(sink: ConsoleSink, shown: io.StringIO) -> None:
    first = table([("w1-a", 1, 1), ("w0-a", 2, 0), ("w1-b", 3, 1), ("w1-c", 4, 1)])
    second = table([("w1-d", 5, 1), ("w0-b", 6, 0), ("w2-a", 7, -1)])
    sink.publish(0, staged(sink, 0, first, second))
    lines = [line for line in shown.getvalue().splitlines() if line.startswith("│")]
    cells = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]
    assert [row[0] for row in cells] == ["w2-a", "w0-a", "w0-b", "w1-a", "w1-b", "... 2 more"]
    assert cells[-1][1:] == ["", "1970-01-01T00:01:00.000000Z", "1970-01-01T00:02:00.000000Z"]


def test_staged_rows_are_no_more_than_are_shown(sink: ConsoleSink) -> None:
    many = table([("x", n, n % 3) for n in range(3000)])
    assert console.heads(many, sink.rows).num_rows == 6
    assert console.heads(many, sink.rows)["rows"].to_pylist() == [1000] * 6
    assert console.heads(many.slice(0, 0), sink.rows).num_rows == 0


def test_a_delivered_batch_is_not_printed_again(sink: ConsoleSink, shown: io.StringIO, tmp_path: Path) -> None:
    parts = staged(sink, 4, table([("a", 1, 0)]))
    sink.publish(4, parts)
    sink.publish(4, parts)
    sink.prepare(Owner("a", str(tmp_path)), overwrite=False)
    sink.publish(4, parts)
    assert shown.getvalue().count("talkers") == 1
    assert [path.name for path in Path(sink.folder).iterdir()] == ["delivered"]
    sink.publish(5, [])
    sink.publish(6, staged(sink, 6, table([("b", 1, 0)])))
    assert shown.getvalue().count("talkers") == 2


def test_staged_rows_that_are_gone_are_reported(sink: ConsoleSink) -> None:
    parts = staged(sink, 0, table([("a", 1, 0)]))
    Path(parts[0][0]).unlink()
    with pytest.raises(RunError, match="are gone"):
        sink.publish(0, parts)


def test_a_closed_pipe_is_reported_and_printed_again(sink: ConsoleSink, shown: io.StringIO) -> None:
    parts = staged(sink, 0, table([("a", 1, 0)]))
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w", buffering=1) as pipe:
        console.write_to(pipe)
        with pytest.raises(RunError, match=r"cannot print the results of query 'talkers': .*Broken pipe"):
            sink.publish(0, parts)
        os.dup2(os.open(os.devnull, os.O_WRONLY), writing)  # so that closing can flush
    console.write_to(shown)
    sink.publish(0, parts)
    assert shown.getvalue().count("talkers") == 1


def test_strings_cannot_command_the_terminal(sink: ConsoleSink, shown: io.StringIO) -> None:
    sink.publish(0, staged(sink, 0, table([("\x1b[31m[bold]red\n\x9b2J", 1, 0)])))
    assert "\\x1b[31m[bold]red\\n\\x9b2J" in shown.getvalue()


def test_types_without_a_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot write column 'l'"):
        ConsoleSink("q", str(tmp_path), pa.schema([("l", pa.list_(pa.int64()))]))
