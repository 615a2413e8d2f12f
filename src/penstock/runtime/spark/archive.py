"""The classes that Spark loads, as an archive that the JVM maps into memory: its start takes half the time with one.

    record (once: a JVM writes the archive when it ends) ──► the user's cache ──► options (every start)

An archive fits one JVM and the very jars it was made of, so its name is a digest of both. It is never needed: where it
is missing, or does not fit after all, the JVM reads the jars as ever, and says nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

import pyspark

from penstock.clock import now
from penstock.runtime.machine import cache_folder
from penstock.runtime.spark.java import java_of

# The JVM tells on standard output what it does not like about an archive.
SILENT = ("-Xlog:cds*=off", "-Xlog:class*=off")
UNUSED = 60 * 86400  # seconds after which an archive that nothing has used is removed

_recorded: list[Path] = []  # where the next JVM of this process writes its classes


def record(path: Path) -> None:
    """The JVM that this process starts next writes its classes there when it ends."""
    _recorded.append(path)


def options(java_home: str) -> tuple[str, ...]:
    """Options of a JVM of Spark's on this machine; none where there is no archive that fits."""
    if _recorded:
        return (f"-XX:ArchiveClassesAtExit={_recorded[-1]}", *SILENT)
    path = place(java_home)
    if path is None or not path.is_file() or " " in str(path):
        return ()
    with contextlib.suppress(OSError):
        os.utime(path)
    return (f"-XX:SharedArchiveFile={path}", *SILENT)


def place(java_home: str) -> Path | None:
    """Where the archive for this Java and these jars lies, or would; None where one of them cannot be looked at."""
    java = java_of(java_home)
    if java is None:
        return None
    try:
        real = java.resolve()
        parts = [real, *sorted(_jars().glob("*.jar"))]
        told = [f"{part} {part.stat().st_size} {part.stat().st_mtime_ns}" for part in parts]
    except OSError:
        return None
    return folder() / f"{hashlib.sha256(chr(10).join(told).encode()).hexdigest()[:16]}.jsa"


def folder() -> Path:
    return cache_folder() / "penstock" / "classes"


def keep(aside: Path, path: Path) -> bool:
    """Make a recorded archive the one that is used, and remove those that were not used for long."""
    if not aside.is_file():
        return False
    aside.replace(path)
    for other in path.parent.glob("*.jsa*"):
        with contextlib.suppress(OSError):
            if other != path and now() - other.stat().st_mtime > UNUSED:
                other.unlink()
    return True


def _jars() -> Path:
    return Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent) / "jars"
