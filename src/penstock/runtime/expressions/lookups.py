"""What records find in tables: `logical.expressions.Lookup`, evaluated.

    hold, or a folder ──► table_of ──► classes_of (once for each match) ──► the class of each record ──► its columns

Tables are known by the digest of their content. One that is read again has another one in every version: a batch says
which one its records see, and where there is no batch, it is the one that was read last (`in_force`). The driver holds
what it has read; a task names the checkpoint that keeps its tables, and each is loaded when a record is first looked up
in it. Several lookups of one match in a chunk find classes once (`Scope.found`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from threading import Lock

import pyarrow as pa

from penstock.logical.expressions import Lookup, Match, record_parts
from penstock.runtime.expressions.evaluate import Scope, evaluate
from penstock.runtime.expressions.folders import folders
from penstock.runtime.expressions.matching.classes import Classes
from penstock.runtime.expressions.matching.columns import table_operand
from penstock.runtime.expressions.matching.make import make_classes
from penstock.runtime.expressions.matching.problems import problem_of
from penstock.runtime.expressions.operands import Operand
from penstock.sources.arrow.kept import place_of
from penstock.sources.tables import load_table

__all__ = [
    "Classes", "classes_of", "hold", "in_force", "looked_up", "name_newest", "newest_of", "problems", "release",
    "table_of", "table_operand",
]  # fmt: skip

MOST_TABLES, MOST_CLASSES = 16, 256

_lock = Lock()
_held: dict[str, pa.Table] = {}
_loaded: OrderedDict[str, pa.Table] = OrderedDict()
_newest_read: dict[str, str] = {}  # of tables that are read again: their content, by their identity
NO_VERSIONS: Mapping[str, str] = {}


def hold(digest: str, data: pa.Table) -> None:
    """Keep a table that was read, until it is released."""
    _held[digest] = data


def release(digest: str) -> None:
    _held.pop(digest, None)


def name_newest(identity: str, digest: str) -> None:
    """What a table that is read again holds now, as far as this process has seen."""
    _newest_read[identity] = digest


def newest_of(identity: str) -> str:
    return _newest_read[identity]


def in_force(match: Match, versions: Mapping[str, str] = NO_VERSIONS) -> Match:
    """The match with the content that its table has: by `versions` (digests by name), else as it was read last."""
    digest = versions.get(match.table) or _newest_read.get(match.digest, match.digest)
    return match if digest == match.digest else replace(match, digest=digest)


def table_of(digest: str) -> pa.Table:
    """The table of this content; a StateError if no checkpoint has it."""
    with _lock:
        found = _held.get(digest, _loaded.get(digest))
    if found is None:
        known = folders()
        assert known, "no checkpoint was named, and no table is held"
        holding = next((folder for folder in known if place_of(folder, digest).exists()), None)
        found = load_table(holding or known[0], digest)
    with _lock:
        if digest not in _held:
            _newest(_loaded, digest, found, MOST_TABLES)
    return found


def _newest(kept: OrderedDict, key: object, value: object, most: int) -> None:  # type: ignore[type-arg]
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > most:
        kept.popitem(last=False)


@lru_cache(maxsize=MOST_CLASSES)
def classes_of(match: Match) -> Classes:
    """The classes of a match's table."""
    return make_classes(match, table_of(match.digest))


def problems(match: Match) -> str | None:
    """What is wrong with the table for this match, in words; None if nothing is."""
    return problem_of(match, table_of(match.digest))


def looked_up(lookup: Lookup, scope: Scope) -> Operand:
    """The class of each record, or the column of its only row; NULL where the table has none for it."""
    match, classes = lookup.match, classes_of(in_force(lookup.match, scope.versions))
    numbers = scope.found.get(match)
    if numbers is None:
        asked = [evaluate(part, scope) for part in record_parts(match)]
        numbers = scope.found[match] = classes.numbers(asked, scope.rows)
    return numbers if lookup.column is None else classes.taken(lookup.column, lookup.type, numbers)
