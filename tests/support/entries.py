"""Files of a log as a later run finds them: through JSON and back."""

from __future__ import annotations

import json
from collections.abc import Sequence

from penstock.state.arrivals import FileEntry, from_json, to_json


def relogged(entries: Sequence[FileEntry]) -> list[FileEntry]:
    return [from_json(found) for found in json.loads(json.dumps([to_json(entry) for entry in entries]))]
