"""CREATE TABLE: what a join may look up. It is read when a query names it: what is wrong with it is said before
anything runs."""

from __future__ import annotations

from penstock.errors import SourceError
from penstock.lang.ast import CreateStream, Word
from penstock.lang.durations import parse_duration
from penstock.lang.text import AppText
from penstock.logical.query import Table
from penstock.logical.resolve.joins.tables import Tables
from penstock.logical.resolve.streams import declared_fields

MATCH, LONGEST, REFRESH = "match", "longest", "refresh"
REFRESH_HINT = f"say how often the table is looked at, like WITH ({REFRESH} = '10 seconds')"


def resolve_table(declared: CreateStream, source: Word, text: AppText, tables: Tables) -> Table:
    """The table of a CREATE TABLE that a query reads."""
    if declared.watermark is not None:
        raise text.error(declared.watermark.column.span, "a table has no WATERMARK", "is it a stream? CREATE STREAM")
    if declared.overload is not None:
        raise text.error(declared.overload.span, "a table is read once, and never overloaded", "leave ON OVERLOAD out")
    options = dict(declared.options)
    refresh = _refresh(declared, options.pop(REFRESH, None), text)
    match = options.pop(MATCH, None)
    if match not in (None, LONGEST):
        hint = f"WITH ({MATCH} = '{LONGEST}') takes the longest prefix; without it all ranges count"
        raise text.error(declared.name.span, f"tables cannot be matched by '{match}'", hint)
    fields = None if declared.columns is None else declared_fields(declared.columns, text)
    try:
        return tables.read(declared.name.text, source.text, tuple(options.items()), fields, match == LONGEST, refresh)
    except SourceError as problem:
        raise text.error(source.span, problem.fact, problem.hint) from problem


def _refresh(declared: CreateStream, given: str | None, text: AppText) -> int | None:
    """How often the table is read again."""
    if given is None:
        return None
    try:
        return refresh_interval(given)
    except ValueError as problem:
        raise text.error(declared.name.span, f"{REFRESH} of a table: {problem}", REFRESH_HINT) from problem


def refresh_interval(given: str) -> int:
    """Microseconds of the option; a ValueError with a user's sentence."""
    interval = parse_duration(given)
    if interval <= 0:
        raise ValueError(f"'{given}' is no time to wait")
    return interval
