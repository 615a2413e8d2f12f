"""Small, whole files: written aside and renamed, or created only if absent.

A checkpoint is a folder of a local or mounted file system: `put_if_absent` needs an exclusive create, which
object stores offer only through interfaces that pyarrow does not have; other schemes are refused at the start.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from urllib.parse import unquote, urlparse

from penstock.errors import ConfigError


def local_path(uri: str, what: str) -> Path:
    """The folder that a path or `file:` URI names."""
    parsed = urlparse(uri)
    if parsed.scheme in ("", "file"):
        return Path(unquote(parsed.path) if parsed.scheme else uri).expanduser().absolute()
    raise ConfigError(
        f"{what} '{uri}' is not on a file system that can create a file exclusively", "use a local or mounted folder"
    )


def put_if_absent(path: Path, data: bytes) -> bool:
    """Create `path` with exactly these bytes; False if it exists. Never visible half-written."""
    aside = _write_aside(path, data)
    try:
        os.link(aside, path)
    except FileExistsError:
        return False
    finally:
        os.unlink(aside)
    return True


def replace(path: Path, data: bytes) -> None:
    """Write `path`, or replace it, atomically."""
    os.replace(_write_aside(path, data), path)


def _write_aside(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.parent / f".{path.name}.{uuid.uuid4().hex[:8]}.tmp"
    try:
        with open(aside, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        aside.unlink(missing_ok=True)
        raise
    return aside
