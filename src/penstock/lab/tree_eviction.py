"""aggregate-tree, Fig. 2 and 3: how skewed groups are, and what a table of bounded size evicts (Sec. III-C, VI-A, VII).

Tables are the engine's, at work on tuples drawn by Zipf laws of the paper's exponents, and on a log of connections.
Beside them stand Lemma 6.1 as printed, what it approximates (perfect LFU, exactly), perfect LFU counted, and Che's
approximation, which the planner uses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, log2

import numpy as np
from numpy.typing import NDArray

from penstock.lab.report import Answer, Claim, Findings, Line, Numbers, Panel, Settings, Tell, judged, spread, table
from penstock.lab.tree_streams import ALPHAS, LETTERS, Epoch, Records, connections, netflow
from penstock.lab.tree_tables import Direct, Lru, Table
from penstock.sharing.eviction import Che, Curve, Lemma
from penstock.sharing.popularity import HEAVY, Popularity, estimated, exponent, of_counts, zipf
from penstock.sources.synthetic import zipf_ranks

Ints = NDArray[np.int64]

EXPONENTS = (0.48, 0.67, 0.85, 1.0)  # the paper's, and the other case of Lemma 6.1
SHARES = (0.01, 0.03, 0.1, 0.2, 0.4, 0.6, 0.8)  # b/g
TIMES = (1, 2, 4, 8, 16)  # n/g
GROUPS = 20_000
NEAR, CLOSE = 0.10, 0.03  # how far a rate may be off
CHAINS = (10_000, 20_000, 50_000, 100_000)
KEPT_SHARES = (0.03, 0.1, 0.3)


@dataclass(frozen=True)
class Rates:
    """Shares of the tuples that are evicted once a table of b entries is full."""

    alpha: float
    share: float
    lemma: float
    exact: float
    lfu: float
    lru: float
    che: float


@dataclass(frozen=True)
class Outs:
    """What a table passes on in an epoch of n tuples, its last entries included: counted (LRU, direct-mapped), by Che,
    and by Eq. 1, b + f·n and never below g, with the f that was counted."""

    where: str
    share: float
    times: float
    counted: int
    direct: int
    che: float
    printed: float


@dataclass(frozen=True)
class Chains:
    capacity: int
    average: float
    worst: tuple[int, ...]
    engine: float


def run(settings: Settings, tell: Tell) -> Findings:
    groups = GROUPS // 4 if settings.quick else GROUPS
    tell("tuples by Zipf laws")
    rates = [found for alpha in (0.0, *EXPONENTS) for found in rates_of(alpha, groups, settings)]
    outs = [found for alpha in (0.0, *EXPONENTS) for found in outs_of(alpha, groups, settings)]
    tell("chains")
    chains = [chains_of(capacity, 3 if settings.quick else 20, settings.seed) for capacity in CHAINS]
    tell("records")
    generated, real = netflow(settings, epochs=1), connections(settings, tell)
    tell("tables fed with real data")
    logged = [found for letters in _relations(real.usual) for found in logged_outs(real.usual, letters)]
    child = below_a_table(settings)
    return Findings(
        "what tables evict (aggregate-tree, Fig. 2, 3)",
        (
            *_skew_claims(generated, real),
            *_rate_claims(rates, real),
            *_out_claims(outs, groups, settings),
            *_che_claims(outs, logged, child, real),
            *_chain_claims(chains),
        ),
        (_skew_table(generated, real), _rate_table(rates), _out_table(outs), _logged_table(logged), _chain_table(chains)),
        (
            _skew_panel(generated),
            _skew_panel(real),
            *(_rate_panel(rates, alpha, groups) for alpha in (0.85, 0.67, 0.48)),
            _out_panel(outs),
        ),
        (
            f"Zipf laws: {groups:,} groups, {max(TIMES) * groups:,} tuples for rates, the second half counted",
            f"{generated.name}: {generated.legend()}; {generated.rows:,} records",
            f"{real.name}: {real.legend()}; {len(real.epochs)} epochs, shown is one of {real.usual.rows:,}",
        ),
    )


def drawn(alpha: float, groups: int, tuples: int, seed: int) -> Ints:
    """Ranks by a Zipf law, the most frequent group 0."""
    return zipf_ranks(np.random.default_rng(seed).random(tuples), groups, alpha)


def rates_of(alpha: float, groups: int, settings: Settings) -> list[Rates]:
    """Rates of a full table: the second half of the tuples, for in the first it fills."""
    codes = drawn(alpha, groups, max(TIMES) * groups, settings.seed)
    half = len(codes) // 2
    printed, exact = Lemma(groups, alpha), Lemma(groups, alpha, exact=True)
    che = Che(zipf(groups, alpha), float(100 * groups))
    found = []
    for share in SHARES:
        b = int(share * groups)
        keeping = Lru(b)
        keeping.take(codes[:half])
        lru = len(keeping.take(codes[half:])) / (len(codes) - half)
        lfu = float((codes[half:] >= b).mean())
        f = che.response(b, float(100 * groups))[1]
        found.append(Rates(alpha, share, float(printed.rates(b)), float(exact.rates(b)), lfu, lru, f))
    return found


def passed(codes: Ints, kind: Table) -> int:
    return len(kind.take(codes)) + len(kind.drain())


def outs_of(alpha: float, groups: int, settings: Settings) -> list[Outs]:
    """Epochs of different length, from an empty table."""
    found = []
    for times in TIMES:
        codes = drawn(alpha, groups, times * groups, settings.seed + times)
        che = Che(zipf(groups, alpha), float(len(codes)))
        for share in SHARES:
            found.append(_out(codes, f"α = {alpha:g}", share, times, int(share * groups), che))
    return found


def _out(codes: Ints, where: str, share: float, times: float, b: int, che: Curve) -> Outs:
    seen, n = len(np.unique(codes)), len(codes)
    counted = passed(codes, Lru(b))
    steady = Lru(b)
    steady.take(codes)
    f = len(steady.take(codes)) / n  # the epoch once more, on a full table
    printed = max(float(seen), min(b, seen) + f * n)
    return Outs(where, share, times, counted, passed(codes, Direct(b)), che.out(b, n), printed)


def logged_outs(epoch: Epoch, letters: str) -> list[Outs]:
    """A relation of the log below the stream; Che by the popularity that was counted."""
    number = epoch.grouping(letters).number
    groups = epoch.groups(letters)
    che = Che(estimated(epoch.counts(letters), float(epoch.rows), float(groups)), float(epoch.rows))
    return [
        _out(number, letters, share, epoch.rows / groups, max(1, int(share * groups)), che) for share in KEPT_SHARES
    ]


def _relations(epoch: Epoch) -> list[str]:
    """Single attributes with many groups, some pairs of them, the 4-tuple, and all."""
    single = sorted(LETTERS, key=epoch.groups, reverse=True)[:4]
    return [*sorted(single), "".join(sorted(single[:2])), "ABCD", LETTERS]


@dataclass(frozen=True)
class Child:
    """A table below another one: its rate, and what the popularity in the stream or in its own input says."""

    counted: float
    stream: float
    own: float


def below_a_table(settings: Settings) -> Child:
    """Pairs of a skewed and an even attribute, then the skewed one alone."""
    tuples = min(settings.rows, 300_000)
    first = drawn(1.0, 400, tuples, settings.seed)
    pairs = first * 1000 + np.random.default_rng(settings.seed).integers(0, 100, tuples)
    fed = Lru(10_000).take(pairs) // 1000
    counted = len(Lru(40).take(fed)) / len(fed)

    def rate(codes: Ints) -> float:
        counts = np.bincount(codes)
        return Che(of_counts(counts[counts > 0]), float(len(codes))).response(40, float(len(codes)))[1]

    return Child(counted, rate(first), rate(fed))


def chains_of(capacity: int, runs: int, seed: int) -> Chains:
    """A full table of random keys with a bucket for each entry, as in the paper, and with the engine's two."""
    rng = np.random.default_rng(seed)
    averages, worst, engine = [], [], []
    for _ in range(runs):
        keys = rng.integers(0, 1 << 40, capacity)
        chained, ours = Lru(capacity, capacity), Lru(capacity)
        for each, into in ((chained, averages), (ours, engine)):
            each.take(keys)
            lengths = each.chains()
            into.append(float(lengths[lengths > 0].mean()))
        worst.append(int(chained.chains().max()))
    return Chains(capacity, float(np.mean(averages)), tuple(worst), float(np.mean(engine)))


def _off(model: float, counted: float) -> float:
    return abs(model / counted - 1) if counted else abs(model)


def _straightness(counts: Ints) -> float:
    """R² of log count on log rank, for groups that come often enough to tell."""
    ordered = np.sort(counts[counts >= HEAVY])[::-1]
    if len(ordered) < 10:
        return float("nan")
    # Ranks evenly spread on the axis of the plot: by themselves nearly all would be at its end.
    places = np.unique(np.geomspace(1, len(ordered), 60).astype(int)) - 1
    x, y = np.log(places + 1.0), np.log(ordered[places])
    return float(np.corrcoef(x, y)[0, 1] ** 2)


def _skew_claims(generated: Records, real: Records) -> list[Claim]:
    both = (generated, real)
    alphas = {
        one.name: [exponent(one.usual.counts(letters)) for letters in one.named().values()] for one in both
    }
    fits = [s for letter in LETTERS if not np.isnan(s := _straightness(real.usual.counts(letter)))]
    straight = sum(s >= 0.95 for s in fits)
    everything = {one.name: exponent(one.usual.counts(LETTERS)) for one in both}
    made = alphas[generated.name]
    return [
        Claim(
            "Fig. 2: exponents of source, source and destination, 4-tuple (generated to be so)",
            ", ".join(f"{alpha}" for alpha in ALPHAS.values()),
            ", ".join(f"{alpha:.2f}" for alpha in made),
            all(abs(a - b) <= 0.05 for a, b in zip(made, ALPHAS.values(), strict=True)),
            "least squares of log count on log rank, groups that come six times or more; holds within 0.05: the input "
            "of what follows, no finding",
        ),
        judged(
            "Fig. 2: the more attributes, the smaller the exponent",
            "0.85, 0.67, 0.48",
            [
                Answer(name, ", ".join(f"{alpha:.2f}" for alpha in found), found[0] > found[1] > found[2])
                for name, found in alphas.items()
            ],
            "source; source and destination; both and their ports",
        ),
        Claim(
            f"Fig. 2: many attributes follow Zipf-like distributions ({real.name})",
            "many",
            f"{straight} of {len(fits)} are straight",
            straight >= len(fits) / 2,
            "straight: R² of log count on log rank is 0.95 or more; holds if half of the attributes with ten frequent "
            "groups are",
        ),
        judged(
            "Sec. VI: with many attributes the distribution is very close to uniform",
            "α near 0",
            [Answer(name, f"α = {alpha:.2f} for all 13", alpha < 0.1) for name, alpha in everything.items()],
            "holds if α < 0.1; in the generated records the attributes beyond the 4-tuple follow from it but for the "
            "flags",
        ),
    ]


def _rate_claims(rates: Sequence[Rates], real: Records) -> list[Claim]:
    skewed = [r for r in rates if r.alpha > 0]

    def by_alpha(model: str, counted: str, limit: float) -> list[Answer]:
        found = []
        for alpha in EXPONENTS:
            here = [r for r in skewed if r.alpha == alpha]
            ratios = [getattr(r, model) / getattr(r, counted) for r in here]
            found.append(Answer(f"α = {alpha:g}", f"{spread(ratios, 2)} ×", all(abs(x - 1) <= limit for x in ratios)))
        return found

    even = [_off(r.lemma, r.lru) for r in rates if r.alpha == 0]
    tenth = next(r for r in rates if r.alpha == 0.85 and r.share == 0.1)
    inputs = f"b/g from {SHARES[0]} to {SHARES[-1]}, tables that are full"
    return [
        judged(
            "Fig. 3: Lemma 6.1 is reasonably accurate for tables that evict the least recently used",
            "reasonably accurate",
            by_alpha("lemma", "lru", NEAR),
            f"the lemma over LRU at work; {inputs}; holds within 10 %; at α = 0.85, b/g = 0.1 the lemma has "
            f"{tenth.lemma:.3f}, perfect LFU {tenth.lfu:.3f}, LRU {tenth.lru:.3f}",
        ),
        judged(
            "Lemma 6.1 is what perfect LFU evicts",
            "approximately",
            by_alpha("lemma", "lfu", NEAR),
            f"the lemma over the tuples of all but the b most frequent groups; {inputs}; holds within 10 %; it puts "
            "b^(1−α) for H(b, α), and so loses the constant of the sum",
        ),
        judged(
            "1 − H(b, α)/H(g, α) is what perfect LFU evicts",
            "(exact)",
            by_alpha("exact", "lfu", CLOSE),
            f"generalised harmonic numbers; {inputs}; holds within 3 %",
        ),
        judged(
            "Sec. VI-A: LRU closely matches perfect LFU",
            "closely",
            by_alpha("lru", "lfu", NEAR),
            f"both counted, LRU over LFU; {inputs}; holds within 10 %",
        ),
        *_real_rate_claims(real.usual, real.name),
        Claim(
            "Lemma 7.1: of uniform data 1 − b/g are evicted, whatever the policy",
            "1 − b/g",
            f"LRU within {max(even):.1%}",
            max(even) <= CLOSE,
            f"{inputs}; holds within 3 %",
        ),
    ]


def _real_rate_claims(epoch: Epoch, name: str) -> list[Claim]:
    """Rates of an epoch on a full table: LRU against perfect LFU and against the lemma."""
    lfu, lemma = [], []
    for letters in _relations(epoch):
        number, counts = epoch.grouping(letters).number, np.sort(epoch.counts(letters))[::-1]
        printed = Lemma(float(len(counts)), min(1.0, exponent(counts)))
        against: tuple[list[float], list[float]] = [], []
        for share in KEPT_SHARES:
            b = max(1, int(share * len(counts)))
            keeping = Lru(b)
            keeping.take(number)
            evicted = len(keeping.take(number))
            against[0].append(evicted / max(1, int(counts[b:].sum())))
            against[1].append(float(printed.rates(b)) * epoch.rows / max(1, evicted))
        for ratios, into in zip(against, (lfu, lemma), strict=True):
            into.append(Answer(letters, f"{spread(ratios, 2)} ×", all(abs(x - 1) <= NEAR for x in ratios)))
    inputs = f"an epoch on a full table, b/g = {', '.join(map(str, KEPT_SHARES))}; holds within 10 %"
    return [
        judged(
            f"Fig. 3: Lemma 6.1 is reasonably accurate for tables that evict the least recently used ({name})",
            "reasonably accurate",
            lemma,
            f"the lemma, with the exponent read off the counts (1 at most), over LRU at work; {inputs}",
        ),
        judged(
            f"Sec. VI-A: LRU closely matches perfect LFU ({name})",
            "closely",
            lfu,
            f"evictions over tuples of all but the b most frequent groups; {inputs}; what comes again soon is in favour "
            "of LRU",
        ),
    ]


def _out_claims(outs: Sequence[Outs], groups: int, settings: Settings) -> list[Claim]:
    ratios = {times: [o.printed / o.counted for o in outs if o.times == times] for times in TIMES}
    tiny = Lemma(10_000.0, 0.85)
    falls = all(
        later.counted <= earlier.counted
        for where in {o.where for o in outs}
        for times in TIMES
        for earlier, later in _pairs([o for o in outs if o.where == where and o.times == times])
    )
    codes = drawn(0.67, groups, 4 * groups, settings.seed)
    seen = len(np.unique(codes))
    fits, collides = passed(codes, Lru(seen)), passed(codes, Direct(seen))
    fewer = {where: [o.counted / o.direct for o in outs if o.where == where] for where in {o.where: 0 for o in outs}}
    return [
        judged(
            "Eq. 1: out = b + f·n",
            "b + f·n",
            [
                Answer(f"n = {times} g", f"{spread(found, 2)} × counted", all(abs(x - 1) <= 0.05 for x in found))
                for times, found in ratios.items()
            ],
            "f is the counted rate of a full table, so what is off is the form: the tuples that fill the table are "
            "counted twice; holds within 5 %",
        ),
        Claim(
            "Sec. VI-A: by Eq. 1 and Lemma 6.1, out falls as b grows",
            "decreasing",
            f"α = 0.85, g = 10,000, n = 12,000: {100 + 12_000 * float(tiny.rates(100.0)):,.0f} at b = 100, "
            f"{10_000 + 12_000 * float(tiny.rates(10_000.0)):,.0f} at b = g",
            all(np.diff(b + 12_000 * tiny.rates(b)).max() <= 0 for b in (np.linspace(1.0, 10_000.0, 200),)),
            "it rises where n(1 − α) < g; held at g from below, as the paper has it, a tiny table seems to do all that "
            "a large one does",
        ),
        Claim(
            "Sec. VI-A: at work, out falls as b grows",
            "decreasing",
            "always" if falls else "not always",
            falls,
            f"LRU tables, {len(outs)} cases: a table holds all that a smaller one holds",
        ),
        Claim(
            "Sec. IV: with b = g nothing is evicted and out = g",
            "g",
            f"{fits:,} of {seen:,} groups; direct-mapped {collides:,}",
            fits == seen,
            "α = 0.67, n = 4 g",
        ),
        judged(
            "Sec. III-C: with chains much less is passed on than with an eviction at every collision",
            "much smaller",
            [Answer(where, f"{spread(found, 2)} ×", max(found) < 1) for where, found in fewer.items()],
            "LRU over direct-mapped, the same number of entries, evictions and last entries together, n/g from "
            f"{TIMES[0]} to {TIMES[-1]}; holds if always less",
        ),
    ]


def _pairs(found: Sequence[Outs]) -> list[tuple[Outs, Outs]]:
    return list(zip(found, found[1:], strict=False))


def _che_claims(outs: Sequence[Outs], logged: Sequence[Outs], child: Child, real: Records) -> list[Claim]:
    def answers(found: Sequence[Outs]) -> list[Answer]:
        return [
            Answer(where, f"{spread(ratios, 2)} ×", all(abs(x - 1) <= NEAR for x in ratios))
            for where in {o.where: 0 for o in found}
            for ratios in ([o.che / o.counted for o in found if o.where == where],)
        ]

    return [
        judged(
            "Che's approximation tells what LRU tables pass on (generated)",
            "(ours) within 10 %",
            answers(outs),
            f"predicted over counted; b/g from {SHARES[0]} to {SHARES[-1]}, n/g from {TIMES[0]} to {TIMES[-1]}",
        ),
        judged(
            f"Che's approximation tells what LRU tables pass on ({real.name})",
            "(ours) within 10 %",
            answers(logged),
            f"predicted over counted, below the stream, b/g = {', '.join(map(str, KEPT_SHARES))}; popularity as it was "
            "counted in the same epoch, tuples taken to be independent: what comes again soon is kept more often",
        ),
        Claim(
            "below a table, the popularity in the stream tells what is evicted",
            f"{child.stream:.2f}",
            f"{child.counted:.2f}; by the popularity in its own input {child.own:.2f}",
            _off(child.stream, child.counted) <= NEAR,
            "a skewed attribute of 400 values (α = 1) in 40 entries, below pairs with an even one of 100 values in "
            "10,000: repeats of frequent pairs stay above; holds within 10 %",
        ),
    ]


def _chain_claims(chains: Sequence[Chains]) -> list[Claim]:
    averages = [one.average for one in chains]
    worst = [(one.capacity, max(one.worst), float(np.mean(one.worst))) for one in chains]
    runs = len(chains[0].worst)
    return [
        Claim(
            "Sec. III-C: the average chain has about 1.6 entries",
            "always around 1.6",
            f"{spread(averages, 2)}; with the engine's two buckets an entry {spread([o.engine for o in chains], 2)}",
            all(abs(average - 1.6) <= 0.05 for average in averages),
            f"as many entries as buckets, {CHAINS[0]:,} to {CHAINS[-1]:,}, {runs} runs; buckets that are not empty; "
            "1/(1 − 1/e) = 1.58; holds within 0.05",
        ),
        Claim(
            "Sec. III-C: the longest chain has 6 to 8 entries",
            "6–8 (average over 1000 runs)",
            ", ".join(f"{mean:.1f} on average, {most} at most (b = {b:,})" for b, most, mean in worst),
            all(6 <= mean <= 8 for _, _, mean in worst),
            f"{runs} runs; holds if the averages are in between",
        ),
        Claim(
            "Sec. III-C: no chain is longer than log b",
            "log b, with high probability",
            ", ".join(f"{most} against ln b = {log(b):.1f}, log₂ b = {log2(b):.1f}" for b, most, _ in worst),
            all(most <= log(b) for b, most, _ in worst),
            f"the longest of {runs} runs; holds by the natural logarithm",
        ),
    ]


def _skew_table(generated: Records, real: Records) -> Numbers:
    rows = []
    for one in (generated, real):
        relations = {**one.named(), **dict(zip(one.attributes, LETTERS, strict=True)), "all 13": LETTERS}
        for name, letters in relations.items():
            counts = one.usual.counts(letters)
            rows.append((one.name, name, len(counts), exponent(counts), _straightness(counts)))
    return table(
        "Fig. 2: groups of an epoch and their Zipf exponent", ("stream", "relation", "groups", "α", "R²"), rows
    )


def _rate_table(rates: Sequence[Rates]) -> Numbers:
    return table(
        "Fig. 3: share of the tuples evicted by a full table",
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


def _logged_table(outs: Sequence[Outs]) -> Numbers:
    return table(
        "the same on real data",
        ("relation", "b/g", "n/g", "counted", "Che", "Eq. 1", "direct-mapped"),
        [(o.where, o.share, o.times, o.counted, o.che / o.counted, o.printed / o.counted, o.direct / o.counted) for o in outs],
    )


def _chain_table(chains: Sequence[Chains]) -> Numbers:
    return table(
        "chains of full tables, a bucket an entry",
        ("b", "average", "longest, average", "longest of all", "average, two buckets an entry"),
        [(one.capacity, one.average, float(np.mean(one.worst)), max(one.worst), one.engine) for one in chains],
    )


def _skew_panel(one: Records) -> Panel:
    lines = []
    for name, letters in one.named().items():
        ordered = np.sort(one.usual.counts(letters))[::-1]
        places = np.unique(np.geomspace(1, len(ordered), 100).astype(int)) - 1
        label = f"{name}, α = {exponent(ordered):.2f}"
        lines.append(Line(label, (places + 1).tolist(), ordered[places].tolist()))
    return Panel(f"Fig. 2: {one.name}", "rank", "records", tuple(lines), log_x=True, log_y=True)


def _rate_panel(rates: Sequence[Rates], alpha: float, groups: int) -> Panel:
    here = [r for r in rates if r.alpha == alpha]
    x, dense = [r.share for r in here], np.linspace(SHARES[0], SHARES[-1], 80)
    che, far = Che(zipf(groups, alpha), float(100 * groups)), float(100 * groups)
    models = {
        "Che": [che.response(b, far)[1] for b in dense * groups],
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
