"""The log of a run: silent unless asked for, a line for each batch, and the facts as JSON."""

from __future__ import annotations

import io
import json
import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock as ps
from penstock.errors import ConfigError, RunError
from penstock.logs import tell
from penstock.monitor.lines import Seldom, check_logging, logged
from penstock.runtime.batch.report import Arrival, Late, waiting_text

APP = """CREATE STREAM flows FROM 'generate:flows' WITH (rows = 20000) WATERMARK ts DELAY '1 second';
CREATE QUERY q INTO 'memory:' AS SELECT proto, count(*) AS n FROM flows [RANGE '1 second'] GROUP BY proto;
"""


@pytest.fixture
def records() -> Iterator[list[logging.LogRecord]]:
    """What a program sees that listens to `penstock`."""
    found: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = found.append  # type: ignore[method-assign]
    logger = logging.getLogger("penstock")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield found
    logger.removeHandler(handler)
    logger.setLevel(logging.NOTSET)


def facts(record: logging.LogRecord) -> dict[str, object]:
    return getattr(record, "facts")  # noqa: B009


def test_a_run_tells_its_beginning_its_batches_and_its_end(records: list[logging.LogRecord], tmp_path: Path) -> None:
    app = ps.App(master="process").sql(APP)
    app.start(str(tmp_path / "ckpt"), parallelism=1, batch_rows=5_000).await_end()
    begun, *batches, ended = records
    assert [record.name for record in batches] == ["penstock.batch"] * 4
    assert begun.getMessage() == f"run started (process): 1 query on 1 stream; checkpoint {tmp_path / 'ckpt'}"
    assert [facts(record)["behind"] for record in batches] == [15_000, 10_000, 5_000, 0]
    assert [facts(record)["records"] for record in batches] == [5_000] * 4
    line = r"batch 0: 5,000 records, \d+ windows? closed, \d+\.\d\d s, 15,000 records behind"
    assert re.fullmatch(line, batches[0].getMessage())
    assert batches[-1].getMessage().endswith(", caught up")
    closed = sum(int(str(facts(record)["windows"])) for record in batches)
    assert ended.getMessage() == f"run ended: 4 batches, 20,000 records, {closed} windows closed"
    assert facts(ended)["accounting"] == {
        "flows": {"input": 20_000, "exact": 20_000, "triaged": 0, "late": 0, "filtered": 0, "malformed": 0}
    }


def test_a_run_that_goes_on_and_fails_says_so(records: list[logging.LogRecord], tmp_path: Path) -> None:
    text = APP.replace("20000", "20000000").replace("memory:", f"parquet:{tmp_path / 'out'}")
    app = ps.App(master="process").sql(text)
    run = app.start(str(tmp_path / "ckpt"), parallelism=1, batch_rows=5_000)
    while not any(record.name == "penstock.batch" for record in records):
        run.await_end(1)
    run.stop()
    assert run.state == "stopped"
    assert records[-1].getMessage().startswith("run stopped: ")
    done = run.progress()["batch"]
    records.clear()
    run = app.start(str(tmp_path / "ckpt"), parallelism=1, batch_rows=5_000)
    (tmp_path / "out" / "_penstock.json").unlink()
    with pytest.raises(RunError, match="another run has taken over"):
        run.await_end()
    assert f", going on after batch {done};" in records[0].getMessage()
    failure, ended = records[-2:]
    assert (failure.name, failure.levelname) == ("penstock.failure", "ERROR")
    assert "failed: another run has taken over output folder" in failure.getMessage()
    assert facts(failure)["hint"] == "give each run its own"
    assert ended.getMessage().startswith("run failed: ")
    assert run.state == "failed"


def test_nothing_is_shown_and_nothing_configured_by_the_library() -> None:
    code = (
        "import logging, penstock, penstock.logs\n"
        "penstock.logs.tell('failure', 'silent', logging.ERROR)\n"
        "print(logging.getLogger().handlers, logging.getLogger('penstock').level)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == ("[] 0", "")


def test_lines_as_text_and_as_json() -> None:
    for form, pattern in (("text", r"\d{4}-\d\d-\d\dT[\d:.]{12}Z warning seven\n"), ("JSON", r"\{.*\}\n")):
        out = io.StringIO()
        with logged(out, "warning", form):
            tell("batch", "not this")
            tell("batch", "seven", logging.WARNING, n=7, place=Path("x"))
        tell("batch", "nor this", logging.ERROR)
        assert re.fullmatch(pattern, out.getvalue())
    found = json.loads(out.getvalue())
    assert found["time"].endswith("Z")
    del found["time"]
    assert found == {
        "level": "warning", "logger": "penstock.batch", "event": "batch", "message": "seven", "n": 7, "place": "x",
    }  # fmt: skip


def test_lines_that_nobody_asked_for_are_few() -> None:
    out = io.StringIO()
    handler = Seldom(out)
    for number in range(50):
        record = logging.makeLogRecord({"msg": f"batch {number}", "event": "batch"})
        record.created = 1000 + number / 10
        handler.emit(record)
        handler.emit(logging.makeLogRecord({"msg": "more", "event": "replan"}))
    handler.finish()
    assert out.getvalue().split("\n") == ["batch 0", "batch 10", "batch 20", "batch 30", "batch 40", "batch 49", ""]


def test_impossible_logs_are_refused() -> None:
    check_logging("INFO", "Json")
    with pytest.raises(ConfigError, match="--log-level loud is not possible"):
        check_logging("loud", None)
    with pytest.raises(ConfigError, match="--log-format xml is not possible"):
        check_logging(None, "xml")


def command(tmp_path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "app.sql").write_text(APP)
    words = ["run", "app.sql", "--master", "process", "--parallelism", "1", "--batch-rows", "5000", *options]
    return subprocess.run(
        [sys.executable, "-m", "penstock", *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )


def test_the_command_line_prints_lines_where_there_is_no_terminal(tmp_path: Path) -> None:
    done = command(tmp_path)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("batch ")]
    assert re.match(r"batch 0: 5,000 records, ", lines[0])
    assert lines[-1].startswith("batch 3: ")
    assert "closing account" in done.stderr
    assert "━" not in done.stderr
    told = command(tmp_path, "--log-format", "json", "--json")
    events = [json.loads(line)["event"] for line in told.stderr.splitlines()]
    assert events == ["start", *["batch"] * 4, "end"]
    assert json.loads(told.stdout)["ended"]
    assert command(tmp_path, "--quiet").stderr == ""
    assert command(tmp_path, "--quiet", "--log-level", "error").stderr == ""


def test_of_live_streams_a_line_says_what_waits_and_not_what_is_to_come() -> None:
    arrivals = {"s": Arrival(30, 500.0, 0.1, 16), "s:owed": Arrival(70, 500.0, 3.0, 1)}
    assert waiting_text(arrivals, {}) == "500/s arrive, 100 wait, 1 in 16 read"
    assert (
        waiting_text({"s": Arrival(0, 0.0, 0.0, 1)}, {"q": Late(2, 1.26, 2.0, 0)}) == "0/s arrive, 0 wait, delay 1.3 s"
    )


def test_a_live_run_tells_what_arrives(records: list[logging.LogRecord], tmp_path: Path) -> None:
    text = APP.replace("generate:flows", "replay:generate:flows").replace("20000)", "20000, speed = 100)")
    app = ps.App(master="process").sql(text)
    app.start(str(tmp_path / "ckpt"), parallelism=1).await_end()
    _, *lines = [record.getMessage() for record in records if record.name == "penstock.batch"]  # the clock starts then
    assert lines
    assert all(re.search(r"/s arrive, [\d,]+ wait", line) for line in lines)
    assert not any("behind" in line or "caught up" in line for line in lines)
