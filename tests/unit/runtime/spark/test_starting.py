"""What makes Spark start faster, and that nothing needs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from penstock.runtime.spark import archive, launchers
from penstock.runtime.spark.java import ensure_java, java_of
from penstock.runtime.spark.workers import worker_python

SPARK = Path(pyspark.__file__).parent


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_no_archive_no_option(cache: Path) -> None:
    assert archive.options(ensure_java()) == ()
    assert archive.options(str(cache)) == ()


def test_an_archive_is_used_and_kept(cache: Path, tmp_path: Path) -> None:
    home = ensure_java()
    path = archive.place(home)
    assert path is not None
    assert path.is_relative_to(cache)
    path.parent.mkdir(parents=True)
    old, aside = path.with_name("old.jsa"), tmp_path / "aside"
    old.write_text("of a Java that is gone")
    os.utime(old, (0, 0))
    assert not archive.keep(aside, path)
    aside.write_text("classes")
    assert archive.keep(aside, path)
    assert not old.exists()
    assert archive.options(home)[0] == f"-XX:SharedArchiveFile={path}"


def test_other_jars_have_another_archive(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark.jar").write_text("one")
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    first = archive.place(ensure_java())
    (tmp_path / "jars" / "spark.jar").write_text("another")
    assert archive.place(ensure_java()) != first


def test_a_damaged_archive_is_passed_over_in_silence(cache: Path) -> None:
    home = ensure_java()
    path, java = archive.place(home), java_of(home)
    assert path is not None
    path.parent.mkdir(parents=True)
    for damaged in (b"", b"\0" * 100_000, os.urandom(100_000)):
        path.write_bytes(damaged)
        said = subprocess.run([str(java), *archive.options(home), "-version"], capture_output=True, text=True)
        assert said.returncode == 0
        assert said.stdout == ""
        assert "warning" not in said.stderr.lower()


def test_workers_find_what_is_installed_before_archives_of_sources() -> None:
    zips = [str(path) for path in (SPARK / "python" / "lib").glob("*.zip")]
    command = [worker_python(), "-c", "import sys; print(sys.argv[1:], *sys.path, sep='\\n')", "a b", "*"]
    path = os.pathsep.join([*zips, str(SPARK / "jars" / "spark-core_2.13-4.3.0.jar"), "/somewhere else"])
    told = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | {"PYTHONPATH": path})
    lines = told.stdout.splitlines()
    assert lines[0] == "['a b', '*']"
    assert "/somewhere else" in lines
    assert not [line for line in lines if line.startswith(str(SPARK))]
    assert worker_python() != sys.executable


def test_launchers_have_a_place_where_nothing_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path / "file"))
    home = launchers.install("hello", "#!/bin/sh\necho hello\n")
    assert launchers.is_home(str(home))
    said = subprocess.run([home / "bin" / "hello"], capture_output=True, text=True, check=True)
    assert said.stdout == "hello\n"


@pytest.mark.slow
def test_a_recorded_archive_serves_a_run(tmp_path: Path) -> None:
    """`penstock prepare` in an empty cache; a run with what it made says nothing of it, nor one whose jars changed."""
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    penstock = [sys.executable, "-m", "penstock"]
    made = subprocess.run([*penstock, "prepare"], capture_output=True, text=True, env=environment, check=True)
    assert "an archive of Spark's classes" in made.stdout
    assert len(list((tmp_path / "cache" / "penstock" / "classes").iterdir())) == 1
    again = subprocess.run([*penstock, "prepare"], capture_output=True, text=True, env=environment, check=True)
    assert "is there" in again.stdout
    (tmp_path / "app.sql").write_text(
        "CREATE STREAM s FROM 'generate:uniform' WITH (rows = 100);\n"
        "CREATE QUERY q AS SELECT count(*) AS n FROM s [WINDOW 1 HOUR];\n"
    )
    run = [*penstock, "run", "app.sql", "--quiet"]
    said = subprocess.run(run, capture_output=True, text=True, env=environment, cwd=tmp_path, check=True)
    assert (said.stdout, said.stderr) == ("", "")
