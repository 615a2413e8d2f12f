"""Logical streams and queries: what was asked, immutable, with every name and type resolved.

`logical.resolve` builds these from text; `sharing` plans over them; nothing here knows an engine.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.logical.expressions import Aggregate, Column, Expression, Prefix, columns
from penstock.logical.types import Type


@dataclass(frozen=True)
class Field:
    name: str
    type: Type


@dataclass(frozen=True)
class Stream:
    """A declared stream. `delay` (microseconds) is None without a WATERMARK clause."""

    name: str
    fields: tuple[Field, ...]
    source: str
    options: tuple[tuple[str, str], ...]
    time: str
    delay: int | None = None
    ahead: int | None = None


@dataclass(frozen=True)
class Tumbling:
    """Windows [k·size, (k+1)·size), size in microseconds."""

    size: int


@dataclass(frozen=True)
class Key:
    """One grouping attribute; `name` is how GROUP BY or the select list calls it."""

    name: str
    attribute: Column | Prefix


@dataclass(frozen=True)
class Output:
    """One column of the result."""

    name: str
    expression: Expression


@dataclass(frozen=True)
class Query:
    """`aggregates` are the distinct ones that select list and HAVING need, in order of appearance."""

    name: str
    stream: str
    window: Tumbling
    where: Expression | None
    keys: tuple[Key, ...]
    select: tuple[Output, ...]
    having: Expression | None
    aggregates: tuple[Aggregate, ...]
    sink: str | None

    @property
    def columns(self) -> frozenset[str]:
        """Stream columns this query reads, besides the time column."""
        used = columns(self.where)
        for key in self.keys:
            used |= columns(key.attribute)
        for aggregate in self.aggregates:
            used |= columns(aggregate)
        return used


@dataclass(frozen=True)
class QuerySet:
    """An app: the streams that its queries read, and the queries in the order written."""

    streams: tuple[Stream, ...]
    queries: tuple[Query, ...]

    def stream(self, name: str) -> Stream:
        return next(s for s in self.streams if s.name == name)
