"""Masters and workers that cannot be used, as far as that shows without Spark; reports of Spark's in words."""

from __future__ import annotations

import socket

import pytest

from penstock.errors import ConfigError
from penstock.runtime.engine.places import FILES, places_of
from penstock.runtime.spark.master import check_reachable, registered
from penstock.runtime.spark.probe import FILE, FOLDER, IMPORT, PYTHON, Trouble, in_report, trouble

DAEMON = """An error occurred while calling o42.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 times, most recent
failure: Lost task 0.3 in stage 0.0 (TID 6) (10.0.0.7 executor 1): org.apache.spark.SparkException:
Error from python worker:
  /opt/python: Error while finding module specification for 'penstock.runtime.spark.daemon' (ModuleNotFoundError:
  No module named 'penstock')
"""
PROGRAM = """Lost task 0.3 in stage 0.0 (TID 6) (10.0.0.7 executor 1):
java.io.IOException: Cannot run program "/opt/x/python": error=2, No such file or directory
\tat java.base/java.lang.ProcessBuilder.start
"""
VERSIONS = """(10.0.0.7 executor 1): org.apache.spark.api.python.PythonException: [PYTHON_VERSION_MISMATCH] Python in
worker has different version: 3.12 than that in driver: 3.11, PySpark cannot run with different minor versions.
"""
MODULE = "ModuleNotFoundError: No module named 'pyarrow'"


def test_masters_that_do_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        check_reachable(f"spark://127.0.0.1:{port}")
        check_reachable(f"spark://127.0.0.1:1,127.0.0.1:{port}")
    for master in (f"spark://127.0.0.1:{port}", "spark://no.such.host.invalid:7077", "spark://127.0.0.1:99999"):
        with pytest.raises(ConfigError, match="no Spark master answers at spark://"):
            check_reachable(master)
    with pytest.raises(ConfigError, match="names no port"):
        check_reachable("spark://127.0.0.1")
    check_reachable("local[2]")


def test_what_registers_may_fail() -> None:
    def fail() -> str:
        raise ValueError("no")

    assert registered("spark://a:1", lambda: "yes", print) == "yes"
    with pytest.raises(ValueError, match="no"):
        registered("spark://a:1", fail, print)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (DAEMON, Trouble(IMPORT, "10.0.0.7", "python3 has no module 'penstock'")),
        (PROGRAM, Trouble(PYTHON, "10.0.0.7", "/opt/x/python cannot be started: No such file or directory")),
        (VERSIONS, Trouble(PYTHON, "10.0.0.7", "python3 is Python 3.12, the driver's 3.11")),
        (MODULE, Trouble(IMPORT, "this machine", "python3 has no module 'pyarrow'")),
        ("ModuleNotFoundError: No module named 'mine'", None),
        ("java.lang.OutOfMemoryError", None),
    ],
)
def test_reports_in_words(text: str, expected: Trouble | None) -> None:
    assert in_report(text, "python3") == expected


def test_all_hosts_in_one_message() -> None:
    found = [Trouble(FOLDER, f"host{n}", "the checkpoint is not there") for n in range(7)]
    error = trouble([Trouble(FILE, "host0", "the input is not there"), *found, found[0]])
    assert error.fact.splitlines()[:2] == ["workers cannot run this app", "  host0: the checkpoint is not there"]
    assert error.fact.splitlines()[-1] == "  and 2 more"
    assert "shared file system" in error.hint


def test_places_of_a_run(tmp_path) -> None:  # type: ignore[no-untyped-def]
    import pyarrow as pa

    from penstock.sinks.registry import open_sink
    from penstock.sources.registry import open_source

    checkpoint, text = tmp_path / "ckpt", "ts,a\n2026-01-01,1\n"
    (tmp_path / "in").mkdir()
    for number in range(FILES + 9):
        (tmp_path / "in" / f"{number:03d}.csv").write_text(text)
    schema = pa.schema([("a", pa.int64())])
    sinks = {
        name: open_sink(name, sink, tmp_path, schema, checkpoint) for name, sink in (("q", None), ("r", "memory:"))
    }
    found = places_of(checkpoint, sinks, {"s": open_source(f"csv:{tmp_path}/in", {})})
    assert found.folders == (("checkpoint", str(checkpoint)), ("output", f"{tmp_path}/q/.penstock"))
    assert FILES / 2 <= len(found.files) <= FILES
    assert found.files[0] == (f"{tmp_path}/in/000.csv", len(text))
