"""Small JSON files with a checksum: identities, versions, manifests. Damage is found when they are read.

`state.data` says how a dataclass becomes JSON, `state.files` how a file is created only once.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

import xxhash

from penstock.errors import StateError
from penstock.state.data import from_data, to_data

RESTORE = "restore the checkpoint from a copy, or start anew with an empty one"
T = TypeVar("T")


def dump(value: object) -> bytes:
    """A dataclass as the content of a file."""
    return encode(to_data(value))


def parse(data: bytes, kind: type[T], path: Path, what: str) -> T:
    """The dataclass that a file holds; `path` and `what` name it if it is damaged, or does not fit."""
    return from_data(kind, decode(data, path, what), f"{what} {path}")


def encode(body: dict[str, Any]) -> bytes:
    text = json.dumps(body, separators=(",", ":"), allow_nan=False)
    return f'{{"checksum":"{xxhash.xxh3_64_hexdigest(text.encode())}","body":{text}}}'.encode()


def decode(data: bytes, path: Path, what: str) -> dict[str, Any]:
    """The body of a file."""
    head, _, rest = data.partition(b',"body":')
    text = rest[:-1]
    wanted = f'{{"checksum":"{xxhash.xxh3_64_hexdigest(text)}"'.encode()
    if head != wanted or rest[-1:] != b"}":
        raise StateError(f"{what} {path} is damaged", RESTORE)
    body: dict[str, Any] = json.loads(text)
    return body
