"""What a result costs behind the merge: processor nanoseconds from merged groups to the staged file, and its bytes.

    python -m benchmarks.measure.results [--rows N] [--windows N] [--sinks parquet discard …] [--repeat N] [--json]

| case | queries |
| --- | --- |
| pairs | the 78 pairs of the 13 attributes of generated flows, all integers: `count(*)` and `sum(bytes)` |
| texts | the 15 pairs of two addresses, two strings and two integers, one of them with NULLs |
| having | the pairs, each with a HAVING that keeps about a tenth of the rows |

The groups are those of `rows` records, made here without the engine's merge. They stand by window and slot, as merges
give them. All sinks take turns and the best of some repetitions counts, because others may use the machine.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console

from benchmarks.measure.figures import new_table
from penstock.aggregates.base import State
from penstock.kernels.dictionary import Dictionary
from penstock.kernels.tables.merge import distinct
from penstock.logical.query import Query
from penstock.logical.resolve.app import resolve_app
from penstock.relations.component import Component, inet6_component, null_component, value_component
from penstock.runtime.merge.results.finish import finish
from penstock.runtime.merge.results.tally import per_window, tally
from penstock.runtime.settings import TaskSettings
from penstock.sinks.base import Owner, Sink
from penstock.sinks.registry import open_sink
from penstock.sinks.schema import result_schema
from penstock.sources.base import START, Position, Split
from penstock.sources.generate.source import FLOW_ATTRIBUTES, open_generate
from penstock.state.segments.groups import Groups

WINDOW, LATEST = 300_000_000, 5_666_666  # microseconds; number of the first window, in 2023
WORDS = 500  # names of services
TEXTS = ("src", "dst", "service", "site", "sport", "vlan")
CREATE = {
    "pairs": ", ".join(f"{name} {'BIGINT' if name in ('src', 'dst') else 'INT'}" for name in FLOW_ATTRIBUTES),
    "texts": "src INET, dst INET, service STRING, site STRING, sport INT, vlan INT",
}
SINKS = ("parquet", "discard")
Array = np.ndarray
Line = dict[str, float | str]


@dataclass(frozen=True)
class Case:
    """Queries and, for each, its groups."""

    name: str
    work: tuple[tuple[Query, Groups], ...]

    @property
    def groups(self) -> int:
        return sum(len(groups) for _, groups in self.work)


@dataclass(frozen=True)
class Tumbling:
    """Bounds of windows as merges have them."""

    def of(self, windows: Array) -> tuple[Array, Array]:
        return windows * WINDOW, windows * WINDOW + WINDOW


def cases(rows: int, windows: int) -> Iterator[Case]:
    records = flows(rows)
    panes = LATEST + np.arange(rows) * windows // rows
    pairs = _queries("pairs", combinations(FLOW_ATTRIBUTES, 2))
    made = [_grouped(records, panes, query, {}) for query in pairs]
    yield Case("pairs", tuple(zip(pairs, made, strict=True)))
    some = _queries("pairs", combinations(FLOW_ATTRIBUTES, 2), " HAVING sum(bytes) > 100000")
    yield Case("having", tuple(zip(some, made, strict=True)))
    words = Dictionary()
    words.intern(*_texts([f"service-{number}" for number in range(WORDS)]))
    texts = {value_component("service"): words, value_component("site"): words}
    records |= {"service": records["dport"] % WORDS, "site": records["src_as"] % WORDS}
    named = _queries("texts", combinations(TEXTS, 2))
    yield Case("texts", tuple((query, _grouped(records, panes, query, texts)) for query in named))


def flows(rows: int) -> dict[str, Array]:
    """Flow records of one record each, by column."""
    source = open_generate("clustered", {"rows": str(rows), "rate": "2500", "flow_length": "1"})
    names = [*FLOW_ATTRIBUTES, "bytes"]
    batches = source.read(Split(START, Position(rows)), names, rows)
    table = pa.Table.from_batches(list(batches))
    return {name: table.column(name).to_numpy().astype(np.int64) for name in names}


def _queries(declared: str, pairs: Iterator[tuple[str, str]], tail: str = "") -> list[Query]:
    columns = f"ts TIMESTAMP, {CREATE[declared]}, bytes INT"
    text = [f"CREATE STREAM flows ({columns}) FROM 'parquet:x.parquet';"]
    for number, keys in enumerate(pairs):
        names = ", ".join(keys)
        text.append(
            f"CREATE QUERY q{number} AS SELECT {names}, count(*) AS n, sum(bytes) AS total "
            f"FROM flows [RANGE '5 minutes' SLIDE '5 minutes'] GROUP BY {names}{tail};"
        )
    return list(resolve_app("\n".join(text), "results.sql", lambda *_: None).queries)  # type: ignore[arg-type]


def _grouped(records: dict[str, Array], panes: Array, query: Query, texts: dict) -> Groups:  # type: ignore[type-arg]
    """The groups of a query by window and slot, in each as they are met."""
    names = [key.name for key in query.keys]
    words = np.stack([panes, *(records[name] for name in names)]).astype(np.uint64)
    keys, at = distinct(words)
    size = keys.shape[1]
    slot = (keys[1] * np.uint64(0x9E3779B97F4A7C15) + keys[2] * np.uint64(0xC2B2AE3D27D4EB4F)) >> np.uint64(40)
    order = np.lexsort([slot % np.uint64(TaskSettings().slots), keys[0]])
    count = np.bincount(at, minlength=size)[order]
    total = np.bincount(at, records["bytes"], size).astype(np.int64)[order]
    components: dict[Component, Array] = {}
    for name, values in zip(names, keys[1:], strict=True):
        numbers = values.view(np.int64)[order]
        nulls = np.zeros(size, np.int64)
        if name == "vlan" and texts:
            nulls = (numbers % 5 == 0).astype(np.int64)
        components |= {value_component(name): numbers, null_component(name): nulls}
        if name in ("src", "dst") and texts:
            components[inet6_component(name)] = np.zeros(size, np.int64)
    own = {component: words for component, words in texts.items() if component.of in names}
    return Groups(keys[0].view(np.int64)[order], components, own, count, {State("sum", "bytes"): (total,)})


def _texts(words: Sequence[str]) -> tuple[Array, Array]:
    data = np.frombuffer("".join(words).encode(), np.uint8)
    return np.cumsum([0, *map(len, words)]), data


def measured(case: Case, sink: str, folder: Path, repeat: int) -> Line:
    """Processor nanoseconds and bytes a group, of which the merge task's account (`tally`) is one."""
    sinks = [_opened(query, sink, folder / f"{case.name}-{sink}-{query.name}") for query, _ in case.work]
    best, rows, size = np.full(3, np.inf), 0, 0
    for turn in range(repeat):
        spent, rows, size = np.zeros(3), 0, 0
        for one, (query, groups) in zip(sinks, case.work, strict=True):
            groups = groups.take(np.arange(len(groups)))  # a roll-up has just made them: they are in the cache
            marks = [time.process_time()]
            ranked = finish(query, groups, Tumbling())
            marks.append(time.process_time())
            tally([per_window(groups.panes, groups.count)], ranked.windows, Tumbling().of)
            marks.append(time.process_time())
            staged, _ = one.stage(ranked.table, turn, 0, "bench")
            marks.append(time.process_time())
            spent += np.diff(marks)
            rows += len(ranked.windows)
            if staged:
                size += Path(staged).stat().st_size
                Path(staged).unlink()
        best = np.minimum(best, spent)
    each = {name: seconds / case.groups * 1e9 for name, seconds in zip(("finish", "tally", "stage"), best, strict=True)}
    return {
        "case": f"{case.name} {sink}",
        "groups": case.groups,
        "rows": rows,
        **{name: round(value, 2) for name, value in each.items()},
        "all": round(sum(each.values()), 2),
        "bytes": round(size / case.groups, 2),
    }


def _opened(query: Query, scheme: str, folder: Path) -> Sink:
    where = "discard:" if scheme == "discard" else f"{scheme}:{folder}"
    sink = open_sink(query.name, where, folder, result_schema(query), folder)
    sink.prepare(Owner("bench", str(folder)), overwrite=True)
    return sink


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.measure.results", description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=500_000, help="records that the groups are made of")
    parser.add_argument("--windows", type=int, default=1, help="windows that close at once")
    parser.add_argument("--sinks", nargs="+", default=list(SINKS), help="schemes: parquet, csv, json, discard")
    parser.add_argument("--cases", nargs="+", default=["pairs", "having", "texts"], help="some of the cases")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions, of which the best counts")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    asked = parser.parse_args(arguments)
    lines = []
    with tempfile.TemporaryDirectory() as place:
        for case in cases(asked.rows, asked.windows):
            if case.name in asked.cases:
                lines += [measured(case, sink, Path(place), asked.repeat) for sink in asked.sinks]
    if asked.json:
        print(json.dumps(lines, indent=2))
        return
    console, names = Console(), [name for name in lines[0] if name != "case"]
    table = new_table("behind the merge: processor ns and bytes a group", "case", names)
    for line in lines:
        table.add_row(str(line["case"]), *(f"{line[name]:,}" for name in names))
    console.print(table)


if __name__ == "__main__":
    main()
