"""Selects inside selects: WITH and subqueries in FROM become hidden queries of their own, resolved first.

    WITH e AS (SELECT ...) SELECT ... FROM e [...]    ─►    outer.e, outer
    SELECT ... FROM (SELECT ...) [...]                ─►    outer.sub1, outer

A query reads streams, tables and other queries; several of them are a join (`resolve.joins`), and so is a query whose
WHERE asks a subquery.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Protocol

from penstock.lang.ast import Derived, FromClause, Select, SelectQuery, SetOperation, Word
from penstock.lang.text import AppText
from penstock.logical.query import Query
from penstock.logical.resolve.joins.columns import JoinInput
from penstock.logical.resolve.joins.join import resolve_join
from penstock.logical.resolve.joins.subqueries import Asked, Inner, check_subquery, split_where
from penstock.logical.resolve.joins.tables import Tables
from penstock.logical.resolve.promises.clause import check_promise
from penstock.logical.resolve.scopes import Input, results_input
from penstock.logical.resolve.select import FromItem, Named, resolve_select

_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_-]")


class Catalog(Protocol):
    """Where streams and queries are found by name, and files by address; whether all that is read has an end."""

    @property
    def bounded(self) -> bool: ...

    @property
    def tables(self) -> Tables: ...

    def find(self, name: Word, text: AppText) -> Input: ...

    def file(self, address: Word, text: AppText) -> Input: ...


@dataclass(frozen=True)
class _Common:
    """The names that WITH gives, before those of the app."""

    outside: Catalog
    named: tuple[tuple[Word, Query], ...] = ()

    @property
    def bounded(self) -> bool:
        return self.outside.bounded

    @property
    def tables(self) -> Tables:
        return self.outside.tables

    def find(self, name: Word, text: AppText) -> Input:
        for word, query in self.named:
            if name.same(word.text):
                return results_input(query, word.text, self.bounded)
        return self.outside.find(name, text)

    def file(self, address: Word, text: AppText) -> Input:
        return self.outside.file(address, text)


def resolve_nested(
    name: str, query: SelectQuery, text: AppText, catalog: Catalog, sink: str | None = None, hidden: bool = False
) -> tuple[Query, ...]:
    """The query with the hidden ones that it reads before it."""
    if isinstance(query, SetOperation):
        raise text.error(query.span, f"{query.operator} is not executable yet")
    inside: list[Query] = []
    common = _common(name, query, text, catalog, inside)
    sources = [_source(name, source, text, common, inside) for source in query.sources]
    named = Named(name, sink, hidden)
    where, asked = split_where(query.where)
    inner = tuple(_inner(name, one, text, common, inside) for one in asked)
    if query.delay is not None:
        check_promise(text, query.delay, sources, inner, hidden)
    if asked or len(sources) > 1 or sources[0].input.table is not None:
        inputs = tuple(_join_input(made, source) for made, source in zip(sources, query.sources, strict=True))
        resolved = resolve_join(named, replace(query, where=where), text, inputs, common.tables, inner)
    else:
        resolved = resolve_select(named, query, text, sources[0])
    return (*_needed(resolved, inside), resolved)


def _inner(name: str, asked: Asked, text: AppText, catalog: Catalog, inside: list[Query]) -> Inner:
    """The stream or table of a subquery in WHERE, which may have a WITH of its own."""
    check_subquery(text, asked)
    (source,) = asked.select.sources
    common = _common(name, asked.select, text, catalog, inside)
    return Inner(asked, _join_input(_source(name, source, text, common, inside), source))


def _join_input(made: FromItem, source: FromClause | Derived) -> JoinInput:
    """An input of a join; by its alias alone where it has one, as in SQL."""
    alias = source.alias
    called = made.input.stream.name if made.input.file else made.input.name
    qualifiers = made.qualifiers if alias is None else (alias,)
    return JoinInput(
        made.input, alias.text if alias else called, qualifiers, made.window, made.span, source.joined, source.on,
        source.outer,
    )  # fmt: skip


def _common(name: str, select: Select, text: AppText, catalog: Catalog, inside: list[Query]) -> _Common:
    common = _Common(catalog)
    for table in select.common:
        if any(table.name.text.casefold() == word.text.casefold() for word, _ in common.named):
            raise text.error(table.name.span, f"WITH names '{table.name.text}' twice", "give each its own name")
        inner = resolve_nested(_hidden_name(name, table.name.text, inside), table.select, text, common, hidden=True)
        inside.extend(inner)
        common = replace(common, named=(*common.named, (table.name, inner[-1])))
    return common


def _source(name: str, source: FromClause | Derived, text: AppText, catalog: Catalog, inside: list[Query]) -> FromItem:
    alias = (source.alias,) if source.alias else ()
    if isinstance(source, FromClause):
        found = catalog.file(source.name, text) if source.file else catalog.find(source.name, text)
        return FromItem(found, (*(() if source.file else (source.name,)), *alias), source.window, source.name.span)
    called = source.alias.text if source.alias else "sub1"
    inner = resolve_nested(_hidden_name(name, called, inside), source.select, text, catalog, hidden=True)
    inside.extend(inner)
    found = results_input(inner[-1], called, catalog.bounded)
    return FromItem(found, alias, source.window, source.span)


def _hidden_name(outer: str, name: str, inside: list[Query]) -> str:
    """No query of a user has a dot in its name."""
    wanted = f"{outer}.{_NOT_PLAIN.sub('_', name)}"
    taken = {query.name.casefold() for query in inside}
    number = 1
    chosen = wanted
    while chosen.casefold() in taken:
        number += 1
        chosen = f"{wanted}-{number}"
    return chosen


def _needed(query: Query, inside: list[Query]) -> list[Query]:
    """Of the hidden queries those that the query reads, through others too; a WITH may name more."""
    read = set(query.inputs)
    for inner in reversed(inside):  # each stands after those that it reads
        read |= set(inner.inputs) if inner.name in read else set()
    return [inner for inner in inside if inner.name in read]
