"""What the tables of smap's Fig. 7 to 12 do: collisions, flow lengths, predictions, and policies of replacement.

`experiments.smap.collision` asks it, and answers the paper's claims with what is measured here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from experiments.kit import probing
from experiments.kit.measure import Tables, TableSpec, run_epochs
from experiments.kit.report import ExperimentSettings
from experiments.kit.streams import PaperStream
from experiments.models.notation import parse
from experiments.smap.common import FEWEST_EVICTIONS, tables_of
from penstock.sharing.model.collision import flow_length, rate
from penstock.sources.generate.synthetic import zipf_ranks

RATIOS = (0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)  # g/b
GROUPS = (500, 1000, 2000)
HASHES = 30
LOW = 0.5  # g/b below which a few colliding pairs decide
FEWEST = 500  # groups that a relation must have to speak of a rate; the paper's have 552 or more
FIRST = "ABCD(AB BCD(BC BD CD))"
SECOND = "ABCD(AB(A B) CD(C D))"
WINDOWS = 10
DEEP = ("BC", "BD", "CD")
Lengths = dict[str, list[tuple[float, float]]]  # (g/b, l_m) by relation


@dataclass(frozen=True)
class RatePoint:
    """One measurement: the collision rate of the model, and that of a table at work."""

    label: str
    ratio: float
    model: float
    found: float

    @property
    def error(self) -> float:
        """Relative to the model."""
        return abs(self.found / self.model - 1)

    @property
    def apart(self) -> float:
        """In points of the rate."""
        return abs(self.found - self.model)


def random_data(settings: ExperimentSettings) -> tuple[list[RatePoint], list[RatePoint]]:
    """Fig. 7 with one hash function, and averaged over several."""
    rng = np.random.default_rng(settings.seed)
    one, mean = [], []
    rows = min(settings.rows, 200_000)
    for groups in GROUPS:
        drawn = rng.integers(0, groups, rows, dtype=np.int32)
        stream = PaperStream("random", np.arange(groups)[:, None], drawn)
        for ratio in RATIOS:
            found = [table_rate(stream, "A", groups / ratio, salt) for salt in range(HASHES)]
            model = rate(groups, round(groups / ratio))
            one.append(RatePoint(f"{groups} groups", ratio, model, found[0]))
            mean.append(RatePoint(f"{groups} groups", ratio, model, float(np.mean(found))))
    return one, mean


def table_rate(stream: PaperStream, letters: str, buckets: float, salt: int = 0) -> float:
    return run_epochs(stream, [TableSpec(letters, -1, max(1, round(buckets)), True)], salt=salt).counts[0].rate


def flows_as_tuples(streams: Sequence[PaperStream], own: bool, hashes: int = 1) -> list[RatePoint]:
    """Fig. 8: each flow is one record, in the order of first packets: a flow of ABCD, or one of the relation itself;
    averaged over hash functions."""
    points = []
    for stream in streams:
        for letters in ("A", "AB", "ABC", "ABCD"):
            groups = stream.groups(letters)
            if groups < FEWEST:
                continue
            flows = stream.codes(letters if own else "ABCD")[stream.rows]
            _, first = np.unique(flows, return_index=True)
            once = PaperStream(stream.name, stream.tuples, stream.rows[np.sort(first)], stream.known)
            for ratio in RATIOS:
                buckets = round(groups / ratio)
                label = f"{stream.name} {letters}"
                found = [table_rate(once, letters, buckets, salt) for salt in range(hashes)]
                points.append(RatePoint(label, ratio, rate(groups, buckets), float(np.mean(found))))
    return points


def flow_lengths(stream: PaperStream, text: str) -> Lengths:
    """Fig. 9, 10: (g/b, l_m) of each relation, all tables with the same g/b."""
    found: Lengths = defaultdict(list)
    configuration = parse(text)
    for ratio in RATIOS:
        tables = tables_of(configuration, lambda letters, ratio=ratio: stream.groups(letters) / ratio)  # type: ignore[misc]
        measured = run_epochs(stream, tables)
        for one, counts in zip(measured.tables, measured.counts, strict=True):
            groups = stream.groups(one.letters)
            if counts.evictions >= FEWEST_EVICTIONS and groups > one.buckets / 20:
                found[one.letters].append((ratio, flow_length(groups, one.buckets, counts.rate)))
    return found


def predicted_rates(stream: PaperStream) -> list[RatePoint]:
    """Fig. 11: l_m by depth in one window is l_a of that depth in the next; the next one's own g is known."""
    configuration = parse(FIRST)
    depths = [configuration.depth(i) for i in range(len(configuration.nodes))]
    edges = [len(stream.rows) * i // WINDOWS for i in range(WINDOWS + 1)]
    points = []
    for ratio in RATIOS:
        whole = {letters: stream.groups_within(letters, edges[1]) for letters in stream.groups_by_letters()}
        tables = tables_of(configuration, lambda letters, ratio=ratio, whole=whole: whole[letters] / ratio)  # type: ignore[misc]
        length: dict[int, float] = {}
        for start, stop in pairwise(edges):
            rows = stream.rows[start:stop]
            work = Tables(stream, tables)
            work.run(rows)
            measured: dict[int, list[float]] = defaultdict(list)
            for one, counts, depth in zip(tables, work.measured().counts, depths, strict=True):
                groups = len(np.unique(stream.codes(one.letters)[rows]))
                model = rate(groups, one.buckets)
                if counts.evictions < FEWEST_EVICTIONS or model <= 0:
                    continue
                if depth in length:
                    label = f"{stream.name} {one.letters}"
                    points.append(RatePoint(label, ratio, model / length[depth], counts.rate))
                measured[depth].append(model / counts.rate)
            length = {depth: float(np.mean(values)) for depth, values in measured.items()}
    return points


@dataclass(frozen=True)
class Policy:
    """Rates at which entries leave a table, by who stays on a collision."""

    stream: str
    newest: float
    first: float
    frequent: float


def rates_by_policy(settings: ExperimentSettings, clustered: PaperStream) -> list[Policy]:
    """One table with as many buckets as groups, under the three policies."""
    rng = np.random.default_rng(settings.seed)
    rows, groups = min(settings.rows, 400_000), 2000
    uniform = PaperStream("uniform", np.arange(groups)[:, None], rng.integers(0, groups, rows, dtype=np.int32))
    ranks = zipf_ranks(rng.random(rows), groups, 1.0)
    zipf = PaperStream("Zipf 1.0", np.arange(groups)[:, None], np.asarray(ranks, np.int32))
    found = []
    for stream, letters, buckets in (
        (uniform, "A", groups),
        (zipf, "A", groups // 4),
        (clustered, "ABCD", clustered.groups("ABCD") // 4),
    ):
        by = {
            policy: np.mean(
                [
                    run_epochs(stream, [TableSpec(letters, -1, buckets, True, policy)], salt=salt).counts[0].rate
                    for salt in range(5)
                ]
            )
            for policy in (probing.NEWEST, probing.FIRST, probing.FREQUENT)
        }
        found.append(Policy(stream.name, *(float(value) for value in by.values())))
    return found
