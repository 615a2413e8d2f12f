"""Turns values of results into text, for `csv`, `json` and `console`. Works on columns, never on single rows."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from penstock.errors import ConfigError


def check_text_types(query: str, schema: pa.Schema, place: str) -> None:
    """Refuse, before anything runs, columns that have no agreed form as text."""
    for field in schema:
        if not _has_text(_value_type(field.type)):
            raise ConfigError(
                f"query '{query}' cannot write column '{field.name}' of type {field.type} to {place}",
                "use parquet:FOLDER, or leave the column out",
            )


def decode(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Dictionaries as the strings they stand for."""
    kind = _value_type(column.type)
    return column if column.type == kind else column.cast(kind)


def iso_times(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Timestamps as ISO 8601 in UTC with microseconds; those of a dictionary, such as windows, once each."""
    return of_words(column, _iso)


def of_words(column: pa.ChunkedArray, made: Callable[[pa.Array], pa.Array]) -> pa.ChunkedArray:
    """What is made of each value; a dictionary's are made once, and stay one."""
    if not pa.types.is_dictionary(column.type):
        return made(column)
    chunks = [pa.DictionaryArray.from_arrays(chunk.indices, made(chunk.dictionary)) for chunk in column.chunks]
    return pa.chunked_array(chunks, pa.dictionary(column.type.index_type, pa.string()))


def _iso(times: pa.Array) -> pa.Array:
    """By a cast: ten times as fast as strftime."""
    import pyarrow.compute as pc  # takes as long to load as all sinks together, and checking an app needs none of it

    text = times.cast(pa.timestamp("us")).cast(pa.string())
    return pc.binary_join_element_wise(pc.replace_substring(text, " ", "T", max_replacements=1), "Z", "")


def is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(_value_type(kind)))


def _value_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _has_text(kind: pa.DataType) -> bool:
    tests = (pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_string, pa.types.is_timestamp)
    return any(test(kind) for test in tests)
