"""app.json: whose checkpoint this is. Written once, by the first run; every later one compares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.state import checked
from penstock.state.files import put_if_absent

NAME = "app.json"


def claim(checkpoint: Path, mine: dict[str, Any]) -> dict[str, Any]:
    """Make an empty checkpoint mine; returns the identity that it has now."""
    return mine if put_if_absent(checkpoint / NAME, checked.encode(mine)) else load(checkpoint)


def load(checkpoint: Path) -> dict[str, Any]:
    path = checkpoint / NAME
    return checked.decode(path.read_bytes(), path, "identity")
