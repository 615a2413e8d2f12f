"""CREATE TABLE: what a join may look up. It is read when a query names it: what is wrong with it is said before
anything runs."""

from __future__ import annotations

from penstock.errors import SourceError
from penstock.lang.ast import CreateStream, Word
from penstock.lang.text import AppText
from penstock.logical.query import Table
from penstock.logical.resolve.joins.tables import Tables
from penstock.logical.resolve.streams import declared_fields

MATCH, LONGEST, REFRESH = "match", "longest", "refresh"


def resolve_table(declared: CreateStream, source: Word, text: AppText, tables: Tables) -> Table:
    """The table of a CREATE TABLE that a query reads."""
    if declared.watermark is not None:
        raise text.error(declared.watermark.column.span, "a table has no WATERMARK", "is it a stream? CREATE STREAM")
    if declared.overload is not None:
        raise text.error(declared.overload, "a table is read once, and never overloaded", "leave ON OVERLOAD out")
    options = dict(declared.options)
    if REFRESH in options:
        fact = "a table that is read again while the app runs is not executable yet"
        raise text.error(declared.name.span, fact, f"leave {REFRESH} out: it is read once, when the app starts")
    match = options.pop(MATCH, None)
    if match not in (None, LONGEST):
        hint = f"WITH ({MATCH} = '{LONGEST}') takes the longest prefix; without it all ranges count"
        raise text.error(declared.name.span, f"tables cannot be matched by '{match}'", hint)
    fields = None if declared.columns is None else declared_fields(declared.columns, text)
    try:
        return tables.read(declared.name.text, source.text, tuple(options.items()), fields, match == LONGEST)
    except SourceError as problem:
        raise text.error(source.span, problem.fact, problem.hint) from problem
