"""CREATE STREAM to `Stream`: column types, the source's schema where none is written, and the time column."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from difflib import get_close_matches
from itertools import count

from penstock.errors import QueryError, SourceError
from penstock.lang.ast import ColumnDefinition, CreateStream, Duration, Watermark, Word
from penstock.lang.durations import LONGEST
from penstock.lang.text import AppText
from penstock.logical.owed import OWED
from penstock.logical.query import Field, SourceFields, Stream
from penstock.logical.resolve.addresses import SUFFIX_HINT, address_of
from penstock.logical.resolve.promises.keep import kept
from penstock.logical.resolve.scopes import suggestion
from penstock.logical.types import NOT_READ, TIMESTAMP, TYPE_NAMES, Kind, Type

SchemaOf = Callable[[str, Mapping[str, str]], tuple[Field, ...]]

PLAIN = re.compile(r"[^A-Za-z0-9_.-]")
_TEXTS = ("csv:", "json:")
_OTHER_TIMES = "times that are not ISO 8601 need WITH (timestamp_format = 'epoch') or a pattern like '%d/%m/%Y %H:%M'"
_SIZED = frozenset({"VARCHAR", "CHAR"})


def declared_fields(columns: tuple[ColumnDefinition, ...], text: AppText) -> tuple[Field, ...]:
    fields: list[Field] = []
    for column in columns:
        if any(column.name.text.casefold() == field.name.casefold() for field in fields):
            raise text.error(column.name.span, f"column '{column.name.text}' is declared twice")
        fields.append(Field(column.name.text, _column_type(column, text)))
    return tuple(fields)


def _column_type(column: ColumnDefinition, text: AppText) -> Type:
    word = column.type_name
    upper = word.text.upper()
    if upper not in TYPE_NAMES:
        near = get_close_matches(upper, TYPE_NAMES, n=1, cutoff=0.7)
        hint = f"did you mean {near[0]}?" if near else f"the types are {', '.join(TYPE_NAMES)}"
        raise text.error(word.span, f"unknown type '{word.text}' of column '{column.name.text}'", hint)
    if column.parameters and (upper not in _SIZED or len(column.parameters) > 1):
        raise text.error(
            word.span, f"{upper} takes no length here" if upper not in _SIZED else f"{upper} takes one length"
        )
    return TYPE_NAMES[upper]


def resolve_declared(
    declared: CreateStream, source: Word, text: AppText, schema_of: SchemaOf, needs_time: bool = True
) -> Stream:
    """The stream of a CREATE STREAM that a query reads."""
    name = declared.name
    if name.text.endswith(OWED):
        raise text.error(name.span, *_own_ending(name.text))
    if declared.columns is None:
        fields = source_fields(source, dict(declared.options), schema_of, text)
    else:
        fields = declared_fields(declared.columns, text)
    watermark = declared.watermark
    return Stream(
        name=name.text,
        fields=fields,
        source=source.text,
        options=declared.options,
        time=_watermark_column(watermark, fields, text) if watermark else _time_of(fields, declared, text, needs_time),
        unread=unread_of(fields),
        delay=_checked(watermark.delay, "DELAY", text) if watermark else None,
        ahead=_checked(watermark.ahead, "MAX AHEAD", text) if watermark and watermark.ahead else None,
        keep=kept(declared.overload, text),
    )


def file_stream(address: Word, text: AppText, schema_of: SchemaOf, taken: Collection[str]) -> Stream:
    """A file that FROM names. Where it has no clear time, only queries without a window can read it."""
    found = address_of(address.text)
    if found is None:
        raise text.error(address.span, f"'{address.text}' does not say what kind of file it is", SUFFIX_HINT)
    fields = source_fields(replace(address, text=found.uri), dict(found.options), schema_of, text)
    wanted = PLAIN.sub("_", address.text.rpartition("/")[2]) or "file"
    names = (wanted if number == 1 else f"{wanted}-{number}" for number in count(1))
    name = next(name for name in names if name.casefold() not in taken)
    return Stream(name, fields, found.uri, found.options, time_column(fields) or "", unread=unread_of(fields))


def source_fields(source: Word, options: Mapping[str, str], schema_of: SchemaOf, text: AppText) -> tuple[Field, ...]:
    try:
        fields = schema_of(source.text, options)
    except SourceError as problem:
        raise text.error(source.span, problem.fact, problem.hint) from problem
    if not fields:
        raise text.error(source.span, "the source has no columns that can be read", "declare the stream's columns")
    return fields


def _own_ending(name: str) -> tuple[str, str]:
    """Fact and hint for a stream that is called as penstock calls some of its own."""
    return f"a stream cannot be called '{name}'", f"names that end in '{OWED}' are for streams that penstock makes"


def _checked(duration: Duration, what: str, text: AppText) -> int:
    if not 0 <= duration.microseconds <= LONGEST:
        raise text.error(duration.span, f"impossible {what}: it must be between zero and 292,000 years")
    return duration.microseconds


def _watermark_column(watermark: Watermark, fields: tuple[Field, ...], text: AppText) -> str:
    word = watermark.column
    found = [field for field in fields if word.same(field.name)]
    if not found:
        if kind := next((kind for name, kind in unread_of(fields) if word.same(name)), ""):
            raise text.error(word.span, f"column '{word.text}' is {kind}, which penstock does not read", NOT_READ)
        hint = suggestion(word.text, [field.name for field in fields], "the columns")
        raise text.error(word.span, f"unknown column '{word.text}' in WATERMARK", hint)
    if found[0].type.kind is not Kind.TIMESTAMP:
        raise text.error(word.span, f"WATERMARK needs a TIMESTAMP, but '{found[0].name}' is {found[0].type}")
    return found[0].name


def time_column(fields: tuple[Field, ...]) -> str | None:
    """The TIMESTAMP called ts or time, else the only TIMESTAMP, else None; a date only where there is nothing else."""
    times = [field.name for field in fields if field.type.kind is Kind.TIMESTAMP]
    for wanted in ("ts", "time"):
        for name in times:
            if name.casefold() == wanted:
                return name
    days = fields.days if isinstance(fields, SourceFields) else frozenset()
    clocks = [name for name in times if name not in days] or times
    return clocks[0] if len(clocks) == 1 else None


def unread_of(fields: tuple[Field, ...]) -> tuple[tuple[str, str], ...]:
    return fields.unread if isinstance(fields, SourceFields) else ()


def _time_of(fields: tuple[Field, ...], declared: CreateStream, text: AppText, needed: bool) -> str:
    found, name = time_column(fields), declared.name
    if found is None and not needed:
        return ""
    if found is None:
        fact, hint = no_time(name.text, fields)
        written = declared.source is not None and declared.source.text.startswith(_TEXTS)
        if declared.columns is None and written and not any(field.type == TIMESTAMP for field in fields):
            hint += f"; {_OTHER_TIMES}"
        raise text.error(name.span, fact, hint)
    return found


def no_time(name: str, fields: tuple[Field, ...]) -> tuple[str, str]:
    """Fact and hint for a stream without a clear time column."""
    times = [field.name for field in fields if field.type.kind is Kind.TIMESTAMP]
    if not times:
        have = ", ".join(f"{field.name} {field.type}" for field in fields[:20])
        return (
            f"stream '{name}' has no TIMESTAMP column",
            f"a stream needs one, for its windows; its columns are {have}",
        )
    fact = f"stream '{name}' has {len(times)} TIMESTAMP columns: {', '.join(times)}"
    return fact, f"say which one is its time: WATERMARK {times[0]} DELAY '1 second'"


def make_stream(
    name: str,
    fields: tuple[Field, ...],
    source: str,
    options: Mapping[str, str],
    time: str | None = None,
    delay: int | None = None,
    ahead: int | None = None,
) -> Stream:
    """A stream without SQL text, as `App.stream` declares it."""
    if name.endswith(OWED):
        raise QueryError(*_own_ending(name))
    chosen = time_column(fields) if time is None else time
    if chosen is None:
        fact, _ = no_time(name, fields)
        raise QueryError(fact, "say which one is its time with time=...")
    matching = [field for field in fields if field.name == chosen]
    if not matching:
        names = [field.name for field in fields]
        raise QueryError(f"unknown time column '{chosen}' of stream '{name}'", suggestion(chosen, names, "the columns"))
    if matching[0].type.kind is not Kind.TIMESTAMP:
        raise QueryError(f"the time column of stream '{name}' must be TIMESTAMP, but '{chosen}' is {matching[0].type}")
    return Stream(
        name, fields, source, tuple((k, str(v)) for k, v in options.items()), chosen, delay, ahead, unread_of(fields)
    )
