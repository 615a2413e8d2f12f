"""aggregate-tree, Fig. 2 and 3: how skewed groups are, and what a table of bounded size evicts (Sec. III-C, VI-A, VII).

Tables are the engine's, at work on records drawn by Zipf laws of the paper's exponents, and on a log of connections.
Beside them stand Lemma 6.1 as printed, what it approximates (perfect LFU, exactly), perfect LFU counted, and Che's
approximation, which the planner uses; and records by the same laws that come again as soon as the log's do (`local`).
`evicted` runs them, `eviction_claims` has what the paper says.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments.kit.report import ExperimentSettings, Findings, Line, Numbers, Panel, Tell, table
from experiments.models.curves import Lemma
from experiments.tree.evicted import (
    CHAINS,
    EXPONENTS,
    SHARES,
    TIMES,
    Chains,
    LocalRates,
    Logged,
    Outs,
    Rates,
    below_a_table,
    chains_of,
    local_rates,
    logged,
    outs_of,
    rates_of,
    relations_of,
)
from experiments.tree.eviction_claims import (
    chain_claims,
    che_claims,
    local_claims,
    out_claims,
    rate_claims,
    skew_claims,
    straightness,
)
from experiments.tree.records import connections, netflow
from experiments.tree.streams import LETTERS, RecordStream
from penstock.sharing.model.eviction import Che
from penstock.sharing.model.popularity import exponent, zipf

GROUPS = 20_000
RUNS, QUICK_RUNS = 20, 3  # of a table whose chains are measured


def run(settings: ExperimentSettings, tell: Tell) -> Findings:
    groups = GROUPS // 4 if settings.quick else GROUPS
    tell("tuples by Zipf laws")
    rates = [found for alpha in (0.0, *EXPONENTS) for found in rates_of(alpha, groups, settings)]
    outs = [found for alpha in (0.0, *EXPONENTS) for found in outs_of(alpha, groups, settings)]
    tell("chains")
    chains = [chains_of(capacity, QUICK_RUNS if settings.quick else RUNS, settings.seed) for capacity in CHAINS]
    tell("records")
    generated, real = netflow(settings, epochs=1), connections(settings, tell)
    tell("tuples with locality")
    local = local_rates(real.usual, real.named(), groups // 8, settings)
    tell("tables fed with real data")
    found = [one for letters in relations_of(real.usual) for one in logged(real.usual, letters)]
    child = below_a_table(settings)
    return Findings(
        "what tables evict (aggregate-tree, Fig. 2, 3)",
        (
            *skew_claims(generated, real),
            *rate_claims(rates, found, real.name),
            *local_claims(local, real.name),
            *out_claims(outs, groups, settings),
            *che_claims(outs, found, child, real.name),
            *chain_claims(chains),
        ),
        (
            _skew_table(generated, real),
            _rate_table("Fig. 3: share of the tuples evicted by a full table", rates),
            *(
                _rate_table(f"Fig. 3: the same with the locality of the {real.name}, {one.fresh:.0%} fresh", one.rates)
                for one in local
                if one.part == 1.0
            ),
            _out_table(outs),
            _logged_table(found),
            _chain_table(chains),
        ),
        (
            _skew_panel(generated),
            _skew_panel(real),
            *(_rate_panel(rates, local, alpha, groups) for alpha in (0.85, 0.67, 0.48)),
            _out_panel(outs),
        ),
        (
            f"Zipf laws: {groups:,} groups, {max(TIMES) * groups:,} tuples for rates, the second half counted",
            f"{generated.name}: {generated.legend()}; {generated.rows:,} records",
            f"{real.name}: {real.legend()}; {len(real.epochs)} epochs, shown is one of {real.usual.rows:,}",
        ),
    )


def _skew_table(generated: RecordStream, real: RecordStream) -> Numbers:
    rows = []
    for one in (generated, real):
        relations = {**one.named(), **dict(zip(one.attributes, LETTERS, strict=True)), "all 13": LETTERS}
        for name, letters in relations.items():
            counts = one.usual.counts(letters)
            rows.append((one.name, name, len(counts), exponent(counts), straightness(counts)))
    return table(
        "Fig. 2: groups of an epoch and their Zipf exponent", ("stream", "relation", "groups", "α", "R²"), rows
    )


def _rate_table(title: str, rates: Sequence[Rates]) -> Numbers:
    return table(
        title,
        ("α", "b/g", "Lemma 6.1", "exact LFU", "LFU counted", "LRU counted", "Che"),
        [(f"{r.alpha:g}", r.share, r.lemma, r.exact, r.lfu, r.lru, r.che) for r in rates],
    )


def _out_table(outs: Sequence[Outs]) -> Numbers:
    return table(
        "passed on in an epoch, over counted",
        ("stream", "b/g", "n/g", "counted", "Che", "Eq. 1", "direct-mapped"),
        [
            (o.where, o.share, o.times, o.counted, o.che / o.counted, o.printed / o.counted, o.direct / o.counted)
            for o in outs
            if o.times in (2, 8) and o.share in (0.03, 0.1, 0.4)
        ],
    )


def _logged_table(found: Sequence[Logged]) -> Numbers:
    return table(
        "the same on real data",
        ("relation", "b/g", "n/g", "counted", "Che", "as planned", "Eq. 1", "direct-mapped"),
        [
            (
                one.where,
                one.share,
                one.times,
                one.counted,
                one.che / one.counted,
                each.planned / one.counted,
                one.printed / one.counted,
                one.direct / one.counted,
            )
            for each in found
            for one in (each.outs,)
        ],
    )


def _chain_table(chains: Sequence[Chains]) -> Numbers:
    return table(
        "chains of full tables, a bucket an entry",
        ("b", "average", "longest, average", "longest of all", "average, two buckets an entry"),
        [(one.capacity, one.average, float(np.mean(one.worst)), max(one.worst), one.engine) for one in chains],
    )


def _skew_panel(one: RecordStream) -> Panel:
    lines = []
    for name, letters in one.named().items():
        ordered = np.sort(one.usual.counts(letters))[::-1]
        places = np.unique(np.geomspace(1, len(ordered), 100).astype(int)) - 1
        label = f"{name}, α = {exponent(ordered):.2f}"
        lines.append(Line(label, (places + 1).tolist(), ordered[places].tolist()))
    return Panel(f"Fig. 2: {one.name}", "rank", "records", tuple(lines), log_x=True, log_y=True)


def _rate_panel(rates: Sequence[Rates], local: Sequence[LocalRates], alpha: float, groups: int) -> Panel:
    here = [r for r in rates if r.alpha == alpha]
    x, dense = [r.share for r in here], np.linspace(SHARES[0], SHARES[-1], 80)
    curve, far = Che(zipf(groups, alpha), float(100 * groups)), float(100 * groups)
    models = {
        "Che": [curve.response(b, far)[1] for b in dense * groups],
        "exact LFU": Lemma(groups, alpha, exact=True).rates(dense * groups).tolist(),
    }
    lemma = Line("Lemma 6.1", dense.tolist(), Lemma(groups, alpha).rates(dense * groups).tolist(), dashed=True)
    return Panel(
        f"Fig. 3: α = {alpha}",
        "b/g",
        "share of the tuples evicted",
        (
            *(Line(name, dense.tolist(), y) for name, y in models.items()),
            lemma,
            Line("LFU counted", x, [r.lfu for r in here], marks=True),
            Line("LRU at work", x, [r.lru for r in here], marks=True),
            *(
                Line(f"LRU at work, {one.fresh:.0%} fresh", x, [r.lru for r in one.rates], marks=True)
                for one in local
                if one.alpha == alpha and one.part in (0.5, 1.0)
            ),
        ),
        bottom=0,
    )


def _out_panel(outs: Sequence[Outs]) -> Panel:
    here = [o for o in outs if o.where == "α = 0.67" and o.share == 0.4]
    x = [o.times for o in here]
    return Panel(
        "passed on in an epoch, α = 0.67, b/g = 0.4",
        "n/g",
        "entries",
        (
            Line("Che", x, [o.che for o in here]),
            Line("Eq. 1", x, [o.printed for o in here], dashed=True),
            Line("LRU at work", x, [o.counted for o in here], marks=True),
            Line("direct-mapped at work", x, [o.direct for o in here], marks=True),
        ),
        bottom=0,
    )
