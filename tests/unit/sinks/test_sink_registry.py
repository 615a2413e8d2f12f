"""What a query may name as its sink, and what is refused before anything runs."""

from __future__ import annotations

import functools
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import ConfigError
from penstock.sinks.base import Owner, Sink
from penstock.sinks.console import ConsoleSink
from penstock.sinks.memory import MemorySink
from penstock.sinks.registry import check_claims, open_sink
from penstock.sinks.spark import SparkSink

SCHEMA = pa.schema([("n", pa.int64())])


def opened(sink: Any, tmp_path: Path, query: str = "q") -> Sink:
    return open_sink(query, sink, tmp_path / "out", SCHEMA, tmp_path / "checkpoint")


def deliver(frame: Any, batch: int) -> None:
    raise AssertionError("only its name is of interest")


class Callable_:
    def __call__(self, frame: Any, batch: int) -> None: ...


def test_places(tmp_path: Path) -> None:
    places = {
        None: f"{tmp_path}/out/q",
        f"parquet:{tmp_path}/p": f"{tmp_path}/p",
        f"CSV:{tmp_path}/c": f"{tmp_path}/c",
        f"json:file://{tmp_path}/a%20b": f"{tmp_path}/a b",
        "console:": "console:",
        "memory:": "memory:",
        "discard:": "discard:",
        "memory:Talkers": "memory:Talkers",
        deliver: f"function {__name__}.deliver",
        functools.partial(deliver, batch=1): f"function {__name__}.deliver",
        Callable_(): f"function {__name__}.Callable_",
    }
    for sink, place in places.items():
        assert opened(sink, tmp_path).place() == place


def test_a_writer_says_where_to_without_its_secrets(tmp_path: Path) -> None:
    options = {"url": "jdbc:postgresql://u:secret@h/d", "dbtable": "talkers", "password": "secret"}
    assert opened(SparkSink("jdbc", options=options), tmp_path).place() == "writer jdbc:talkers"
    assert opened(SparkSink("noop"), tmp_path).place() == "writer noop:"


def test_options(tmp_path: Path) -> None:
    fifty = opened("console:?rows=50", tmp_path)
    assert isinstance(fifty, ConsoleSink)
    assert fifty.rows == 50
    view = opened("memory:v", tmp_path)
    assert isinstance(view, MemorySink)
    assert (view.view, view.folder) == ("v", f"{tmp_path}/checkpoint/memory/q")


@pytest.mark.parametrize(
    ("sink", "message"),
    [
        ("tape:x", "query 'q' writes to unknown sink 'tape:x'"),
        ("folder", "query 'q' writes to unknown sink 'folder'"),
        ("", "query 'q' writes to unknown sink ''"),
        ("csv:", "query 'q' writes to 'csv:', which names no folder"),
        ("json: ", "query 'q' writes to 'json:', which names no folder"),
        ("parquet:s3://bucket/x", "is not on a file system"),
        ("console:x", "unknown sink 'console:x'"),
        ("console:?rows=0", r"unknown sink 'console:\?rows=0'"),
        ("console:?lines=5", r"unknown sink 'console:\?lines=5'"),
        ("discard:x", "unknown sink 'discard:x'"),
        ("memory:a b", "'a b' cannot be the name of a view"),
        (7, "the sink of query 'q' is a int"),
    ],
)
def test_what_cannot_be_a_sink_is_refused(sink: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        opened(sink, tmp_path)


def test_writers_are_checked() -> None:
    with pytest.raises(ConfigError, match="unknown mode 'upsert'"):
        SparkSink("jdbc", mode="upsert")
    with pytest.raises(ConfigError, match="needs a format"):
        SparkSink("")


def claimed(tmp_path: Path, **sinks: Any) -> None:
    check_claims({name: opened(sink, tmp_path, name) for name, sink in sinks.items()})


def test_queries_share_a_console_but_no_folder(tmp_path: Path) -> None:
    claimed(tmp_path, a="console:", b="console:", c="memory:", d="memory:", e="memory:v", f=deliver, g=deliver, h=None)
    claimed(tmp_path, a="discard:", b="discard:")
    for a, b in (
        (f"csv:{tmp_path}/x", f"json:{tmp_path}/x"),
        ("memory:v", "memory:V"),
        (None, f"parquet:{tmp_path}/out/a"),
    ):
        with pytest.raises(ConfigError, match="queries 'a' and 'b' both write to"):
            claimed(tmp_path, a=a, b=b)


def test_results_that_are_not_kept_say_so(tmp_path: Path) -> None:
    for sink, place in (("console:", "console:"), ("discard:", "discard:"), (deliver, f"function {__name__}.deliver")):
        with pytest.raises(ConfigError, match=f"the results of query 'q' go to {place} and are not kept"):
            opened(sink, tmp_path).results(None)  # type: ignore[arg-type]


def test_discarded_rows_leave_nothing(tmp_path: Path) -> None:
    """A task drops them, and the driver has nothing to prepare, check or publish."""
    sink, owner = pickle.loads(pickle.dumps(opened("discard:", tmp_path))), Owner("a", str(tmp_path))
    sink.prepare(owner, overwrite=False)
    parts = [sink.stage(pa.table({"n": [1]}), 0, part, "x") for part in range(2)]
    sink.check(owner)
    sink.publish(0, [(staged, final) for staged, final in parts])
    assert list(tmp_path.iterdir()) == []
