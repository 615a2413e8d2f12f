"""What can be refused is refused before a JVM is started: this Java notes when it is asked for more than a version."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.state import lease

APP = """CREATE STREAM s FROM 'generate:uniform' WITH (rows = 100);
CREATE QUERY q AS SELECT count(*) AS n FROM s [WINDOW 1 HOUR];
"""
JAVA = """#!/bin/sh
if [ "$1" = -version ]; then echo 'openjdk version "{version}"' >&2; exit 0; fi
: > "{started}"
exit 1
"""


def java(folder: Path, version: str = "17.0.1") -> Path:
    home = folder / "jdk"
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    program.write_text(JAVA.format(version=version, started=folder / "started"))
    program.chmod(0o755)
    return home


def run(folder: Path, *options: str, version: str = "17.0.1") -> subprocess.CompletedProcess[str]:
    """`penstock run` on that Java, which does not start."""
    (folder / "app.sql").write_text(APP)
    command = [sys.executable, "-m", "penstock", "run", "app.sql", "--quiet", *options]
    environment = os.environ | {"JAVA_HOME": str(java(folder, version)), "XDG_CACHE_HOME": str(folder / "cache")}
    environment["PATH"] = f"{environment['JAVA_HOME']}/bin" + (f":{os.environ['PATH']}" if version >= "17" else "")
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, timeout=300)


def refused(folder: Path, said: subprocess.CompletedProcess[str], fact: str) -> None:
    assert fact in said.stderr
    assert said.returncode == 2
    assert "Traceback" not in said.stderr
    assert not (folder / "started").exists()


def test_a_jvm_would_be_noticed(tmp_path: Path) -> None:
    run(tmp_path)
    assert (tmp_path / "started").exists()


def test_output_of_another_run(tmp_path: Path) -> None:
    out = tmp_path / "out" / "q"
    out.mkdir(parents=True)
    (out / "_penstock.json").write_text(json.dumps({"id": "other", "checkpoint": str(tmp_path / "other")}))
    (out / "q-00000000-0000.parquet").write_bytes(b"")
    refused(tmp_path, run(tmp_path, "--output", "out"), "already holds results of another run")


def test_files_of_others_in_the_output(tmp_path: Path) -> None:
    (tmp_path / "out" / "q").mkdir(parents=True)
    (tmp_path / "out" / "q" / "mine.parquet").write_bytes(b"")
    refused(tmp_path, run(tmp_path, "--output", "out"), "holds files that are not results of penstock")


def test_output_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    refused(tmp_path, run(tmp_path, "--output", "out"), "cannot be used")


def test_checkpoint_in_use(tmp_path: Path) -> None:
    held = lease.acquire(tmp_path / "ckpt", [os.getpid()])
    try:
        refused(tmp_path, run(tmp_path, "--checkpoint", "ckpt"), f"is in use by process {os.getpid()}")
    finally:
        held.release()


def test_checkpoint_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "ckpt").write_text("")
    refused(tmp_path, run(tmp_path, "--checkpoint", "ckpt"), "checkpoint")


@pytest.mark.parametrize("master", ["local[0]", "sprak://host:1"])
def test_no_master(tmp_path: Path, master: str) -> None:
    refused(tmp_path, run(tmp_path, "--master", master, "--checkpoint", "ckpt"), "is no Spark master")
    assert not (tmp_path / "ckpt").exists()


def test_java_that_is_too_old(tmp_path: Path) -> None:
    said = run(tmp_path, "--checkpoint", "ckpt", version="1.8.0_392")
    refused(tmp_path, said, "no Java runtime of version 17 or later (JAVA_HOME: version 8")
    assert not (tmp_path / "ckpt").exists()
