"""Lines of JSON as a stream: `json:FILE`, `json:FOLDER` or `json:GLOB`, also compressed, one object per line.

| option | default | |
| --- | --- | --- |
| `path_NAME` | the column's name | where column NAME stands: `path_src = 'id.orig_h'` |
| `timestamp_format`, `longest_record`, `cache` | | as for `sources.text.csv` |

A column named `a.b.c` is key c of object b of object a, or key `b.c` of object a, and so on: keys joined by dots. Keys
that are not there are NULL, as is null. Numbers are read as INTEGER only if they are written without point and
exponent; numbers in quotes are text, and text is no number: such values are bad, as are objects and arrays. A time is
text, or with `timestamp_format = 'epoch'` a number. A line that is no JSON or no object is unreadable. Without declared
columns the first records of the first file decide. Neighbours: `kernels.text.json` finds the values.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from penstock.errors import SourceError
from penstock.kernels.text.index import find_lines
from penstock.kernels.text.json import find_values
from penstock.logical.query import Field
from penstock.sources.files import Address
from penstock.sources.options import Options
from penstock.sources.text.blocks import TextPiece
from penstock.sources.text.columns import Rules, Spans, TimeFormat
from penstock.sources.text.infer import SAMPLE, types_of
from penstock.sources.text.options import common_options
from penstock.sources.text.source import HEAD, TextLayout, TextSource, refuse_flags, refuse_returns, without_mark
from penstock.sources.unpack import head, with_packed

Array = np.ndarray[Any, Any]
SUFFIXES = with_packed((".json", ".jsonl", ".ndjson", ".log"))
ELEMENTS = "'.[]'"
NO_COMMENT = np.empty(0, np.uint8)


@dataclass(frozen=True)
class JsonPlan:
    """The paths of the columns asked, one after the other, and the greatest number of keys in one."""

    paths: Array
    edges: Array
    levels: int


@dataclass(frozen=True)
class JsonFormat:
    """The options; `paths` are those of columns that are not named like their path."""

    paths: tuple[tuple[str, str], ...]
    times: TimeFormat
    longest: int
    scheme: str = "json"

    @cached_property
    def rules(self) -> Rules:
        return Rules.of_json(self.times)

    def starts(self, piece: TextPiece, starts: Array) -> int:
        return int(
            find_lines(
                piece.data, piece.begin, piece.end, piece.final, self.longest, True, NO_COMMENT, piece.state, starts
            )
        )

    def spans(self, piece: TextPiece, spans: Spans, rows: int, plan: JsonPlan) -> int:
        spans.kind.fill(0)
        return int(
            find_values(
                piece.data, piece.begin, piece.end, piece.final, self.longest, not piece.ascii, plan.paths, plan.edges,
                plan.levels, piece.state, spans.starts[:rows], spans.reason, spans.first, spans.stop, spans.kind,
            )
        )  # fmt: skip

    def plan(self, columns: tuple[str, ...] | None, asked: list[Field]) -> JsonPlan:
        renamed = dict(self.paths)
        paths = [renamed.get(field.name, field.name).encode() for field in asked]
        edges = np.cumsum([0, *map(len, paths)], dtype=np.int64)
        levels = 1 + max((path.count(b".") for path in paths), default=0)
        return JsonPlan(np.frombuffer(b"".join(paths), np.uint8), edges, levels)

    def layout(self, text: bytes, final: bool, name: str, declared: tuple[Field, ...]) -> TextLayout:
        """Refuse what is JSON, but not line by line: an array, or objects over several lines."""
        first, second = (*(line.strip() for line in text.splitlines() if line.strip()), b"", b"")[:2]
        over_lines = first.startswith(b"{") and not first.endswith(b"}") and second and not second.startswith(b"{")
        if first.startswith(b"[") or over_lines:
            array = first.startswith(b"[")
            what = "one JSON array" if array else "JSON over several lines"
            hint = f"convert it: jq -c {ELEMENTS if array else '.'} {os.path.basename(name)}"
            raise SourceError(f"'{name}' is {what}, not one JSON object per line", hint)
        return TextLayout(None)


def open_json(path: str, options: Mapping[str, str], declared: tuple[Field, ...] | None = None) -> TextSource:
    """Open a file, a folder (its *.json, *.jsonl, *.ndjson and *.log files, also compressed) or a glob."""
    address = Address.of("json", path, SUFFIXES)
    given = Options("json", options)
    times, longest, cache = common_options(given)
    paths = given.take_named("path_")
    given.require_all_taken()
    files = address.required(bool(declared))
    fields = declared or _inferred(JsonFormat((), times, longest), files)
    refuse_flags(fields, f"'{path}'")
    form = JsonFormat(_renamed(paths, fields), times, longest)
    if declared and files:
        text, final = head(files[0], HEAD)
        refuse_returns(text, files[0])
        form.layout(without_mark(text, files[0]), final, files[0], declared)
    return TextSource(address, fields, cache, tuple(files), form=form)


def _renamed(paths: Mapping[str, str], fields: tuple[Field, ...]) -> tuple[tuple[str, str], ...]:
    names = {field.name.lower(): field.name for field in fields}
    for name in paths:
        if name not in names:
            raise SourceError(f"option 'path_{name}' is for no column", f"the columns are {', '.join(names.values())}")
    return tuple(sorted((names[name], path) for name, path in paths.items()))


def _inferred(form: JsonFormat, paths: list[str]) -> tuple[Field, ...]:
    """Columns of the first file that has an object: all its paths that do not lead to arrays only."""
    for path in paths:
        text, final = head(path, HEAD)
        text = without_mark(text, path)
        refuse_returns(text, path)
        form.layout(text, final, path, ())
        names: dict[str, None] = {}
        for line in text.splitlines()[:SAMPLE]:
            names.update(dict.fromkeys(_leaves(_object(line), "")))
        if names:
            return types_of(form, tuple(names), text, final, 0)
    raise SourceError(f"'{paths[0]}' has no JSON object to tell the columns from", "declare the stream's columns")


def _object(line: bytes) -> dict[str, Any]:
    """One line of the sample; nothing of what is no object."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _leaves(found: Mapping[str, Any], prefix: str) -> Iterator[str]:
    for key, value in found.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{key}.")
        elif not isinstance(value, list):
            yield prefix + key
