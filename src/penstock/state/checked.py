"""Small JSON files with a checksum: identities and manifests. Damage is found when they are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import xxhash

from penstock.errors import StateError

RESTORE = "restore the checkpoint from a copy, or start anew with an empty one"


def encode(body: dict[str, Any]) -> bytes:
    text = json.dumps(body, separators=(",", ":"))
    return f'{{"checksum":"{xxhash.xxh3_64_hexdigest(text.encode())}","body":{text}}}'.encode()


def decode(data: bytes, path: Path, what: str) -> dict[str, Any]:
    """The body of a file; `path` and `what` name it if it is damaged."""
    head, _, rest = data.partition(b',"body":')
    text = rest[:-1]
    wanted = f'{{"checksum":"{xxhash.xxh3_64_hexdigest(text)}"'.encode()
    if head != wanted or rest[-1:] != b"}":
        raise StateError(f"{what} {path} is damaged", RESTORE)
    body: dict[str, Any] = json.loads(text)
    return body
