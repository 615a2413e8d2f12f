"""app.json: whose checkpoint this is, and the format of all its files. Written once, by the first run; every later one
compares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import StateError
from penstock.state import checked
from penstock.state.data import from_data
from penstock.state.files import put_if_absent

NAME = "app.json"
FORMAT = 4  # of everything in a checkpoint; goes up when files of before cannot be read any more


@dataclass(frozen=True)
class Identity:
    """`version` is the format; `sources` has the fingerprints of the app's sources, by stream; `engine` is what drives
    its batches, and has logged them (`runtime.engine`)."""

    version: int
    id: str
    sources: Mapping[str, str]
    slots: int
    engine: str = "spark"


def claim(checkpoint: Path, mine: Identity) -> Identity:
    """Make an empty checkpoint mine; returns the identity that it has now."""
    return mine if put_if_absent(checkpoint / NAME, checked.dump(mine)) else load(checkpoint)


def load(checkpoint: Path) -> Identity:
    """The identity of a checkpoint, if it is of the format that this version of penstock reads."""
    path = checkpoint / NAME
    body = checked.decode(path.read_bytes(), path, "identity")
    found = body.get("version")
    if found != FORMAT:
        newer = isinstance(found, int) and found > FORMAT
        raise StateError(
            f"checkpoint {checkpoint} was made by {'a newer' if newer else 'an older'} version of penstock: its format "
            f"is {found}, this one reads {FORMAT}",
            "use that version, or another checkpoint",
        )
    return from_data(Identity, body, f"identity {path}")


def check(checkpoint: Path) -> None:
    """Refuse a checkpoint of another format; an empty one is of any."""
    if (checkpoint / NAME).exists():
        load(checkpoint)
