"""Samples of the stream for the planner: the packed keys of some of a task's records (`runtime.profile.survey`).

A sample is made of runs, a thousand records in a row each, from all over the task. Groups come and go in the course of
a stream: the first records of a connection log told of a fifth of its groups, or of five times as many. A run shows how
flows are clustered. The first task of a batch leaves a sample as a small file of the checkpoint, in place of the one
before; the driver reads it between two batches. Before a run starts, and to explain a plan, a few runs of the source's
first batch are taken.

    samples/STREAM.sample    checksum │ places and shape (JSON) │ words
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import xxhash

from penstock.kernels.dictionary import Dictionary
from penstock.relations.closing import RollUp
from penstock.relations.component import Component, Tag, component_of, sieve_component
from penstock.relations.layout import Layout, Place, Range, lay_out, union
from penstock.relations.relation import Relation
from penstock.relations.storing import Stored
from penstock.runtime.merge.prefixes import cut_dictionary, finer_component
from penstock.runtime.profile.survey import Survey
from penstock.runtime.tables.chunk import pack_words
from penstock.runtime.task.keys import Chosen
from penstock.sharing.graph.lattice import choosers
from penstock.sources.base import START, Position, Source, Split
from penstock.state.garbage import SAMPLES

Array = np.ndarray
FOLDER = SAMPLES
RECORDS = 16_384  # of a sample
RUN = 1024  # records in a row
FIRST_RUNS = 8  # that a sample before the run is made of: a file may have to be read up to each of them
DIGEST = 8  # bytes of the checksum


class Sampler:
    """Runs of records from all over a task. When there are enough, it drops every second one and takes half as many."""

    def __init__(self) -> None:
        self._runs: list[Chosen] = []
        self._every, self._met = 1, 0

    def add(self, chunk: Chosen) -> None:
        for start in range(0, chunk.rows, RUN):
            if self._met % self._every == 0:
                self._runs.append(chunk.cut(start, start + RUN))
                if len(self._runs) * RUN > RECORDS:
                    self._runs, self._every = self._runs[::2], 2 * self._every
            self._met += 1

    def survey(self, kept: Stored, dictionaries: Mapping[Component, Dictionary]) -> Survey | None:
        """Of what is stored, and of what queries are rolled up to: that may be stored one day."""
        if not self._runs:
            return None
        closings = (reader.closing for reader in kept.readers)
        rolled = [closing.to for closing in closings if isinstance(closing, RollUp)]
        return survey_of(
            kept.relations, with_coarser(_joined(self._runs), kept.relations, rolled, dictionaries), rolled
        )


def _joined(runs: Sequence[Chosen]) -> Chosen:
    ranges: dict[Component, Range] = {}
    for run in runs:  # without those of columns that are all NULL there
        ranges = union(ranges, {name: span for name, span in run.ranges.items() if span[0] <= span[1]})
    masks: dict[str, Array | None] = {}
    for name in runs[0].masks:
        parts = [(run.masks[name], run.rows) for run in runs]
        every = all(mask is None for mask, _ in parts)
        whole = [np.ones(rows, bool) if mask is None else mask for mask, rows in parts]
        masks[name] = None if every else np.concatenate(whole)
    names = dict.fromkeys(name for run in runs for name in run.components)
    components = {name: np.concatenate([run.component(name) for run in runs]) for name in names}
    return Chosen(masks, components, runs[0].ranges | ranges, sum(run.rows for run in runs))


def survey_of(relations: tuple[Relation, ...], chosen: Chosen, more: Iterable[Relation] = ()) -> Survey:
    """Keys of all relations; of `more` there are components besides."""
    kept = {part.component for relation in (*relations, *more) for part in relation.parts}
    spans = {name: chosen.ranges[name] for name in sorted(kept)}
    taken = {name: chosen.components[name] for name in spans if name in chosen.components}
    first = choosers(relations)
    for query in sorted(set(first.values())):
        mask, name = chosen.masks.get(query), sieve_component(query)
        spans[name] = (0, int(mask is not None))
        if mask is not None:
            taken[name] = (~mask).astype(np.int64)
    layout = lay_out(spans)
    # Any of those that choose alike may be the first one, once queries before it are dropped.
    alike = {sieve_component(query): layout.places[sieve_component(one)] for query, one in first.items()}
    return Survey(Layout({**layout.places, **alike}, layout.words), pack_words(layout, taken, chosen.rows))


def with_coarser(
    chosen: Chosen,
    relations: Iterable[Relation],
    wanted: Iterable[Relation],
    dictionaries: Mapping[Component, Dictionary],
) -> Chosen:
    """The same with the components that these relations would have by themselves, and do not have where they are stored
    as one: prefixes of IPv6 addresses, and longer panes."""
    panes = {relation.pane: relation.panes for relation in relations}
    found, ranges = dict(chosen.components), dict(chosen.ranges)
    for relation in wanted:
        for name in (part.component for part in relation.parts if part.component not in ranges):
            if name.tag is Tag.PANE:
                fine = next(one for one in panes if relation.panes.made_of(panes[one]))
                found[name] = relation.panes.of(panes[fine], chosen.component(fine))
                ranges[name] = int(found[name].min()), int(found[name].max())
            elif name.tag is Tag.INET6:
                fine = finer_component(name, chosen.ranges)
                cut, codes = cut_dictionary(dictionaries[fine], name.length)
                found[name], ranges[name] = codes[chosen.component(fine)], (0, cut.count)
    return Chosen(chosen.masks, found, ranges, chosen.rows)


def first_records(source: Source, columns: list[str], batch_rows: int) -> pa.RecordBatch | None:
    """A few runs from all over a source's first batch, as one batch; None where the source is empty."""
    splits = _runs(source, batch_rows)
    batches = [batch for split in splits for batch in source.read(split, columns, RECORDS) if batch.num_rows]
    if not batches:
        return None
    same = all(batch.schema == batches[0].schema for batch in batches)
    whole = pa.Table.from_batches(batches).combine_chunks().to_batches() if same else batches
    return max(whole, key=len)


def _runs(source: Source, batch_rows: int) -> list[Split]:
    """A few runs from all over the first batch; one from its start where that is all of it, or all that is cheap."""
    rows = min(batch_rows, source.rows())
    if rows <= RECORDS or not source.abilities.random_access:
        return [Split(START, Position(min(rows, RECORDS)))]
    run, step = RECORDS // FIRST_RUNS, rows // FIRST_RUNS
    return [Split(Position(start), Position(start + run)) for start in range(0, FIRST_RUNS * step, step)]


def path_of(checkpoint: Path, stream: str) -> Path:
    return checkpoint / FOLDER / f"{quote(stream, safe='')}.sample"


def store(path: Path, survey: Survey) -> None:
    """Write aside and rename: whoever reads finds a whole one. A sample that cannot be written is left out."""
    places = {name.text: asdict(place) for name, place in survey.layout.places.items()}
    head = json.dumps({"places": places, "shape": survey.words.shape}).encode()
    data = head + b"\n" + np.ascontiguousarray(survey.words).tobytes()
    aside = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        path.parent.mkdir(exist_ok=True)
        aside.write_bytes(xxhash.xxh3_64_digest(data) + data)
        os.replace(aside, path)
    except OSError:
        with suppress(OSError):
            aside.unlink(missing_ok=True)


def load(path: Path) -> Survey | None:
    """The newest sample; None where there is none, or a damaged one: a plan can do without."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    if data[:DIGEST] != xxhash.xxh3_64_digest(data[DIGEST:]):
        return None
    head, _, words = data[DIGEST:].partition(b"\n")
    told = json.loads(head)
    places = {component_of(name): Place(**place) for name, place in told["places"].items()}
    return Survey(Layout(places, told["shape"][0]), np.frombuffer(words, np.uint64).reshape(told["shape"]))
