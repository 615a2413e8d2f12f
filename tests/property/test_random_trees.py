"""The tree of tables against the paper's LFTA, one tuple at a time (`support.phantoms`).

Random forests of tables, random chunks, all policies of replacement, sums, counts, extremes, NULLs,
prefixes, panes, queries that choose tuples, epochs that end in the middle: every table must pass on the same entries in
the same order, every leaf take in the same, and counters agree. The simulator is told the engine's hash, no more.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from penstock.aggregates.base import State
from penstock.aggregates.shape import Shape
from penstock.aggregates.values import Values
from penstock.kernels.tables import probe as tables
from penstock.logical.expressions import Column, Prefix
from penstock.logical.types import BIGINT, INET, INT, Kind
from penstock.logical.window import Window
from penstock.relations.component import Component, Tag, sieve_component
from penstock.relations.component import component_of as part
from penstock.relations.layout import Layout, lay_out
from penstock.relations.relation import Choice, Relation
from penstock.relations.storing import Stored
from penstock.runtime.tables import forest as trees
from penstock.runtime.tables.chunk import Chunk, pack_words
from penstock.runtime.tables.forest import Forest
from penstock.runtime.tables.leaf import Leaf
from penstock.runtime.tables.rows import Format, KeyCut
from penstock.sharing.graph.configuration import STREAM
from penstock.sharing.model.kinds.direct import EVICT, KEEP
from penstock.sharing.model.kinds.lru import RECENT as LEAST_RECENT
from penstock.sharing.plan import SharedPlan, Table
from support import phantoms
from support.phantoms import FREQUENT, NEWEST, RECENT, Phantoms
from support.reference import Entry, merge_entries

Array = np.ndarray
Key = tuple[int | None, ...]
Parts = tuple[tuple[str, int], ...]  # component, bits that are dropped

A, B, C, SRC = Column("a", INT), Column("b", BIGINT), Column("c", INT), Column("src", INET)
ATTRIBUTES = (A, B, C, SRC, Prefix(SRC, 24), Prefix(SRC, 8))
V, W = Column("v", INT), Column("w", BIGINT)
STATES = tuple(State(kind, name) for name in "vw" for kind in ("count", "sum", "min", "max"))
FOLDS = ("add", *("add", "add", "min", "max") * 2)  # of count(*), then of the states
WINDOWS = (Window(60, 60), Window(20, 20), Window(50, 20))
GREATEST, LEAST = (1 << 63) - 1, -(1 << 63)
TREES, SLOW_TREES = 60, 1500
MEMORY = 1 << 30  # leaves are never full
POLICIES = {EVICT: NEWEST, KEEP: FREQUENT, LEAST_RECENT: RECENT}


@dataclass
class Case:
    """A random plan and its stream."""

    seed: int
    rng: random.Random = field(init=False)
    dice: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.rng, self.dice = random.Random(self.seed), np.random.default_rng(self.seed)
        self.rows = self.rng.choice([1, 50, 400, 1500])
        self.relations = [self._relation(f"q{i}") for i in range(self.rng.randint(1, 7))]
        names = [r.name for r in self.relations]
        self.sieves: dict[str, str] = {}
        for name in names:
            self.sieves[name] = self.rng.choice([name, name, *self.sieves.values()])
        self.tables = self._tables()
        self.columns = self._columns()
        self.values = {name: self._value() for name in "vw"}
        chosen = {name: self.rng.random() < 0.5 for name in names}
        self.masks = {
            name: self.dice.random(self.rows) < self.rng.choice([0.0, 0.3, 0.9]) if chosen[name] else None
            for name in names
            if self.sieves[name] == name
        }

    def _relation(self, name: str) -> Relation:
        keys = tuple(self.rng.sample(ATTRIBUTES, self.rng.randint(0, 3)))
        kept = tuple(state for state in STATES if self.rng.random() < 0.4)
        return Relation(name, "s", keys, self.rng.choice(WINDOWS).panes, Choice(None, frozenset("abcvw")), (V, W), kept)

    def _tables(self) -> tuple[Table, ...]:
        """At most four deep, several roots; tables that feed nothing are left out."""
        depths: list[int] = []
        parents: list[int] = []
        for number in range(self.rng.randint(1, 8)):
            parent = self.rng.choice([STREAM, *(n for n in range(number) if depths[n] < 4)])
            parents.append(parent)
            depths.append(1 if parent == STREAM else depths[parent] + 1)
        fed: list[list[str]] = [[] for _ in parents]
        for relation in self.relations:
            fed[self.rng.randrange(len(parents))].append(relation.name)
        useful = {n for n in range(len(parents)) if fed[n]}
        for number in reversed(range(len(parents))):
            if number in useful and parents[number] != STREAM:
                useful.add(parents[number])
        place = {number: i for i, number in enumerate(sorted(useful))}
        return tuple(
            Table(
                f"t{place[n]}", place.get(parents[n], STREAM), tuple(fed[n]), self.rng.choice([1, 2, 5, 30, 100]),
                self.rng.choice(list(POLICIES)),
            )
            for n in sorted(useful)
        )  # fmt: skip

    def _columns(self) -> dict[str, Array]:
        n, many = self.rows, self.rng.choice([2, 6, 40])
        columns = {
            part("value:a"): self.dice.integers(-4, many, n),
            part("value:b"): self.dice.integers(0, many, n) * self.rng.choice([1, 1 << 55]),
            part("value:c"): self.dice.zipf(1.4, n) % many,
            part("value:src"): sum(self.dice.integers(0, 4, n) << shift for shift in (24, 8, 0)),
            part("inet6:src"): np.zeros(n, np.int64),
        }  # fmt: skip
        for name in "abc":
            columns[part(f"null:{name}")] = (self.dice.random(n) < self.rng.choice([0, 0.2])).astype(np.int64)
        columns[part("null:src")] = np.zeros(n, np.int64)
        columns[part("inet6/24:src")] = columns[part("inet6/8:src")] = columns[part("inet6:src")]
        places = np.sort(self.dice.integers(0, 400, n))
        for window in WINDOWS:
            panes = window.panes
            columns[part(f"pane:time:{panes.slide}:{panes.cut}")] = np.array([panes.number(int(p)) for p in places])
        return columns

    def _value(self) -> Values:
        valid = np.empty(0, np.uint8)
        if self.rng.random() < 0.5:
            valid = (self.dice.random(self.rows) < 0.8).astype(np.uint8)
        return Values(self.dice.integers(-1000, 1000, self.rows), valid)

    @property
    def shape(self) -> Shape:
        nullable = frozenset(n for n in "vw" if len(self.values[n].valid))
        return Shape(dict.fromkeys("vw", Kind.INTEGER), nullable=nullable)

    def layout(self) -> Layout:
        """With some room, differently each time: an epoch that ends may be due to a new layout."""
        spans = {}
        for name, column in self.columns.items():
            least, most = int(column.min()), int(column.max())
            address = name == part("value:src")
            spans[name] = (0 if address else least - self.rng.choice([0, 0, 3]), most + self.rng.choice([0, 100]))
        for name in set(self.sieves.values()):
            spans[sieve_component(name)] = (0, int(self.masks[name] is not None))
        return lay_out(spans)

    def chosen(self, query: str, row: int) -> bool:
        mask = self.masks[self.sieves[query]]
        return mask is None or bool(mask[row])

    def below(self, number: int) -> list[Relation]:
        """Relations that a table feeds, at any distance."""
        found = [r for r in self.relations if r.name in self.tables[number].leaves]
        for other, table in enumerate(self.tables):
            if table.parent == number:
                found += self.below(other)
        return found


def parts_of(relations: list[Relation], sieves: Mapping[str, str] | None = None) -> Parts:
    """The finest key that any of these needs, with a bit for each choice of tuples."""
    finest: dict[str, int] = {}
    for relation in relations:
        panes = relation.panes
        finest[part(f"pane:time:{panes.slide}:{panes.cut}")] = 0
        for attribute in relation.attributes:
            if isinstance(attribute, Prefix):
                kept = {
                    part("value:src"): 32 - attribute.length,
                    part(f"inet6/{attribute.length}:src"): 0,
                    part("null:src"): 0,
                }
            elif attribute is SRC:
                kept = {part("value:src"): 0, part("inet6:src"): 0, part("null:src"): 0}
            else:
                kept = {part(f"value:{attribute.name}"): 0, part(f"null:{attribute.name}"): 0}
            for component, drop in kept.items():
                finest[component] = min(drop, finest.get(component, drop))
    if sieves is not None:
        finest |= {sieve_component(sieves[r.name]): 0 for r in relations}
    return tuple(sorted(finest.items()))


def cut_key(key: Mapping[str, int | None], parts: Parts) -> Key:
    """A NULL is None."""
    kept = []
    for component, drop in parts:
        value = key[component]
        kept.append(None if value is None else value >> drop << drop)
    return tuple(kept)


def named(key: Key, parts: Parts) -> dict[Component, int | None]:
    return dict(zip((component for component, _ in parts), key, strict=True))


class Simulated(Phantoms):
    """The paper's LFTA with queries that choose: an entry goes only where some query below wants it."""

    def __init__(self, case: Case, engine: Engine) -> None:
        self.case, self.engine = case, engine
        self.parts = [parts_of(case.below(n), case.sieves) for n in range(len(case.tables))]
        self.wants = [{sieve_component(case.sieves[r.name]) for r in case.below(n)} for n in range(len(case.tables))]
        relations = [
            phantoms.Relation(
                table.name, table.parent, self._key(table.parent, self.parts[number]), table.buckets, False,
                POLICIES[table.policy],
            )
            for number, table in enumerate(case.tables)
        ]  # fmt: skip
        by_name = {r.name: r for r in case.relations}
        for number, table in enumerate(case.tables):
            for query in table.leaves:
                mine = parts_of([by_name[query]])
                relations.append(phantoms.Relation(query, number, self._key(number, mine), 0, True))
                self.parts.append(mine)
                self.wants.append({sieve_component(case.sieves[query])})
        super().__init__(relations, engine.bucket, FOLDS)

    def _key(self, parent: int, mine: Parts) -> Any:
        if parent == STREAM:
            return lambda row: cut_key(dict(row), mine)
        return lambda key: cut_key(named(key, self.parts[parent]), mine)

    def _feed(self, parent: int, entry: Entry) -> None:
        for number, table in enumerate(self.tables):
            if table.relation.parent == parent:
                key: Any = dict(entry.key) if parent == STREAM else named(entry.key, self.parts[parent])  # type: ignore[arg-type, call-overload]
                if any(not key[sieve] for sieve in self.wants[number]):
                    self._probe(number, Entry(table.relation.key(entry.key), entry.partials))

    def take(self, row: int) -> None:
        self.run([(tuple(self.tuple_of(row).items()), self.partials(row))])

    def tuple_of(self, row: int) -> dict[Component, int | None]:
        columns = self.case.columns
        found: dict[Component, int | None] = {}
        for name, column in columns.items():
            flag = name.null
            null = name != flag and flag in columns and columns[flag][row]
            found[name] = None if null else int(column[row])
        return found | {
            sieve_component(name): int(not self.case.chosen(name, row)) for name in set(self.case.sieves.values())
        }

    def partials(self, row: int) -> tuple[int, ...]:
        found = [1]
        for name in "vw":
            value, valid = int(self.case.values[name].numbers[row]), self.case.values[name].valid
            found += [1, value, value, value] if not len(valid) or valid[row] else [0, 0, GREATEST, LEAST]
        return tuple(found)


class Engine:
    """The engine's tree; `passed` has what each table passed on and `taken` what each leaf took in, decoded."""

    def __init__(self, case: Case) -> None:
        self.case = case
        plan = SharedPlan(None, Stored(tuple(case.relations), ()), "", case.tables)  # type: ignore[arg-type]
        self.tree = Forest(plan, case.sieves, dict.fromkeys(self.case.sieves, 4))
        self.parts = [parts_of(case.below(n), case.sieves) for n in range(len(case.tables))]
        self.passed: list[list[Entry]] = [[] for _ in case.tables]
        self.taken: dict[str, list[Entry]] = {r.name: [] for r in case.relations}
        for number, branch in enumerate(self.tree.branches):
            branch._gather = self._recording(number, branch._gather)  # type: ignore[method-assign]
        self.tree._insert = self._insert  # type: ignore[method-assign]
        self.start()

    def start(self) -> None:
        """All anew in another layout."""
        self.layout = self.case.layout()
        self.tree.lay_out(self.layout, self.case.shape)
        self.buckets: dict[tuple[int, Any], int] = {}

    def take(self, rows: Array) -> None:
        """A chunk of these tuples of the stream."""
        columns = {name: column[rows] for name, column in self.case.columns.items()}
        for name in set(self.case.sieves.values()):
            if (mask := self.case.masks[name]) is not None:
                columns[sieve_component(name)] = (~mask[rows]).astype(np.int64)
        values = {
            name: Values(value.numbers[rows], value.valid[rows] if len(value.valid) else value.valid)
            for name, value in self.case.values.items()
        }
        masks = {name: self.case.masks[self.case.sieves[name]] for name in self.case.sieves}
        chunk = Chunk(pack_words(self.layout, columns, len(rows)), values, {})
        work = self.tree.take(chunk, {name: None if m is None else m[rows] for name, m in masks.items()}, MEMORY)
        assert list(work) == []

    def _recording(self, number: int, gather: Any) -> Any:
        def record(rows: Array) -> None:
            form = self.tree.branches[number].format
            self.passed[number] += decoded(form, rows, self.parts[number])
            gather(rows)

        return record

    def _insert(self, leaf: Leaf, chunk: Chunk, rows: Array, cut: KeyCut, memory: int) -> Iterator[Leaf]:
        if chunk.partials is not None:
            keys = leaf.arrivals(chunk, rows, cut).keys
            words = [[chunk.weights], *(chunk.partials[s] for s in leaf.format.columns)]
            table = np.ascontiguousarray(np.vstack([*keys, *(w.view(np.uint64) for each in words for w in each)]).T)
            self.taken[leaf.relation.name] += decoded(leaf.format, table, parts_of([leaf.relation]))
        return Forest._insert(self.tree, leaf, chunk, rows, cut, memory)

    def drain(self) -> None:
        assert list(self.tree.drain({}, MEMORY)) == []

    def bucket(self, number: int, key: Any) -> int:
        """Of a key in a table, as the tables of the engine number their buckets."""
        if (number, key) not in self.buckets:
            branch, parts = self.tree.branches[number], self.parts[number]
            words, values = np.zeros((branch.format.words, 1), np.uint64), named(key, parts)
            for component, value in values.items():
                place = branch.format.places[component]
                if place.bits and value is not None:
                    words[place.word, 0] |= np.uint64((value - place.base) << place.shift)
            hashed = int(tables.key_hash(words, 0))
            self.buckets[number, key] = (hashed >> 32) * branch.table.buckets >> 32
        return self.buckets[number, key]


def decoded(form: Format, rows: Array, parts: Parts) -> list[Entry]:
    """Rows of a table as entries: their keys by components, the partials that the table keeps."""
    assert set(form.places) >= {component for component, _ in parts}
    found = []
    for row in rows.tolist():
        key: dict[Component, int | None] = {}
        for component, _ in parts:
            place = form.places[component]
            key[component] = (row[place.word] >> place.shift & place.mask) + place.base if place.bits else place.base
        for component in key:
            if key.get(component.null) and component.tag is not Tag.NULL:
                key[component] = None
        states = tuple(signed(row[word]) for word in range(form.words, form.width))
        found.append(Entry(tuple(key[component] for component, _ in parts), states))
    return found


def signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def kept(form: Format, entries: list[Entry]) -> list[Entry]:
    """The simulator's entries with the partials that a table keeps."""
    chosen = [0, *(1 + STATES.index(state) for state in form.columns)]
    return [Entry(entry.key, tuple(entry.partials[i] for i in chosen)) for entry in entries]


def check(seed: int, patch: pytest.MonkeyPatch) -> None:
    case = Case(seed)
    patch.setattr(trees, "ENOUGH", case.rng.choice([1, 20, 8192]))
    patch.setattr(trees, "PIECE", case.rng.choice([1, 8, 8192]))
    engine = Engine(case)
    simulated = Simulated(case, engine)
    story = f"seed {seed}: {case.tables}"
    done = 0
    while done < case.rows:
        rows = np.arange(done, min(case.rows, done + case.rng.choice([1, 7, 100, 1000])))
        engine.take(rows)
        for row in rows.tolist():
            simulated.take(row)
        done += len(rows)
        if case.rng.random() < 0.1:
            engine.drain()
            simulated.flush()
            engine.start()
    engine.drain()
    simulated.flush()
    for number, branch in enumerate(engine.tree.branches):
        table = simulated.tables[number]
        assert engine.passed[number] == kept(branch.format, table.passed), f"{story}\ntable {number}"
        counts = table.counts
        told = branch.probes, branch.evictions, branch.flushed
        counted = counts.probes + counts.flush_probes, counts.evictions + counts.flush_evictions, counts.flushed
        assert told == counted, f"{story}\ntable {number}"
    fed = {query for table in case.tables for query in table.leaves}
    for leaf in engine.tree.leaves:
        if leaf.relation.name in fed:
            query = leaf.relation.name
            entries = kept(leaf.format, simulated.output(query))
            assert engine.taken[query] == entries, f"{story}\nleaf {query}"
            groups = decoded(leaf.format, leaf.rows[: leaf.count], parts_of([leaf.relation]))
            folds = ("add", *(FOLDS[1 + STATES.index(state)] for state in leaf.format.columns))
            assert {e.key: e.partials for e in groups} == merge_entries(entries, folds), f"{story}\nleaf {query}"
            assert leaf.probes == len(entries)


@pytest.mark.parametrize("start", range(0, TREES, 20))
def test_tables_pass_on_what_the_paper_says(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(start, start + 20):
        check(seed, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1000, 1000 + SLOW_TREES, 100))
def test_many_trees_pass_on_what_the_paper_says(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(start, start + 100):
        check(seed, monkeypatch)


def test_the_cases_have_all_there_is() -> None:
    """Otherwise the comparisons above would prove less than they say."""
    cases = [Case(seed) for seed in range(TREES)]
    tables = [table for case in cases for table in case.tables]
    assert {table.policy for table in tables} == set(POLICIES)
    assert any(depth(case.tables) == 4 for case in cases)
    assert any(sum(table.parent == STREAM for table in case.tables) > 2 for case in cases)
    assert any(len(case.values["v"].valid) for case in cases)
    assert any(mask is not None and not mask.any() for case in cases for mask in case.masks.values())
    assert any(len(set(case.sieves.values())) < len(case.sieves) for case in cases)


def depth(tables: tuple[Table, ...]) -> int:
    depths: list[int] = []
    for table in tables:
        depths.append(1 if table.parent == STREAM else depths[table.parent] + 1)
    return max(depths)
