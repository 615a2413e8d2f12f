"""Samples of the stream for the planner: the packed keys of a task's first tuples (`runtime.survey`).

The first task of a batch leaves one, of its first large chunk, as a small file of the checkpoint that replaces the one
before; the driver reads it between two batches.
Before a run, and to explain, the first tuples of the source are taken.

    samples/STREAM.sample    checksum │ places and shape (JSON) │ words
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from urllib.parse import quote

import numpy as np
import xxhash

from penstock.runtime.folding import pack_words
from penstock.runtime.survey import Survey
from penstock.sharing.lattice import choosers
from penstock.sharing.layout import Layout, Place, Range, lay_out
from penstock.sharing.plan import Relation, sieve_component
from penstock.state.garbage import SAMPLES

Array = np.ndarray
FOLDER = SAMPLES
TUPLES = 16_384
DIGEST = 8  # bytes of the checksum


def survey_of(
    relations: Iterable[Relation],
    components: dict[str, Array],
    ranges: dict[str, Range],
    masks: dict[str, Array | None],
    tuples: int = TUPLES,
) -> Survey:
    """The first tuples of a chunk."""
    relations = tuple(relations)
    kept = {part.component for relation in relations for part in relation.parts}
    spans = {name: ranges[name] for name in sorted(kept)}
    taken = {name: components[name][:tuples] for name in spans if name in components}
    rows = min(tuples, max((len(values) for values in components.values()), default=0))
    chosen = choosers(relations)
    for query in sorted(set(chosen.values())):
        mask, name = masks.get(query), sieve_component(query)
        spans[name] = (0, int(mask is not None))
        if mask is not None:
            taken[name] = (~mask[:tuples]).astype(np.int64)
    layout = lay_out(spans)
    # Any of those that choose alike may be the first one, once queries before it are dropped.
    alike = {sieve_component(query): layout.places[sieve_component(first)] for query, first in chosen.items()}
    return Survey(Layout({**layout.places, **alike}, layout.words), pack_words(layout, taken, rows))


def path_of(checkpoint: Path, stream: str) -> Path:
    return checkpoint / FOLDER / f"{quote(stream, safe='')}.sample"


def store(path: Path, survey: Survey) -> None:
    """Write aside and rename: whoever reads finds a whole one. A sample that cannot be written is left out."""
    places = {name: asdict(place) for name, place in survey.layout.places.items()}
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
    places = {name: Place(**place) for name, place in told["places"].items()}
    return Survey(Layout(places, told["shape"][0]), np.frombuffer(words, np.uint64).reshape(told["shape"]))
