"""From the queries of a stream to its plan: phantoms chosen by cost in nanoseconds on this machine
(`sharing.model.engine_problem`).

`auto` prices no sharing, the best plan of seed smap (direct-mapped tables, phantoms chosen by GC), the best tree of
seed aggregate-tree (LRU tables), and the cheaper of them with tables of either kind where each does better, within the
memory and parts of it; it takes the cheapest that it has found when its time is up. Sharing has to promise a gain worth
having. A named chooser, allocator and kind of table is followed as the papers have it (seed smap, Sec. 4 and 6;
aggregate-tree, Sec. V to VII, which counts hash operations). What the choice rests on goes into the plan (`Basis`),
for `sharing.explain`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, log
from time import thread_time

from penstock.logical.query import Stream
from penstock.relations.storing import Stored
from penstock.sharing.allocate.peak_load import within_peak
from penstock.sharing.allocate.registry import allocator
from penstock.sharing.choose.choice import choose
from penstock.sharing.choose.fronts import without_fronts
from penstock.sharing.choose.search import ChosenTables
from penstock.sharing.graph.configuration import STREAM, Configuration, Node
from penstock.sharing.graph.feeding_graph import candidates
from penstock.sharing.graph.grain import Grain, feeds, fineness
from penstock.sharing.graph.lattice import lattice, name_of
from penstock.sharing.graph.notation import text
from penstock.sharing.model.collision import rate
from penstock.sharing.model.engine_problem import DOUBT, EngineProblem, whole_buckets
from penstock.sharing.model.figures import responses
from penstock.sharing.model.flow import flush_cost, tree_cost
from penstock.sharing.model.kinds.direct import DIRECT
from penstock.sharing.model.kinds.kind import TableKind
from penstock.sharing.model.kinds.lru import LRU
from penstock.sharing.model.kinds.registry import KINDS, kind_named
from penstock.sharing.model.statistics import Statistics
from penstock.sharing.model.unit_costs import Costs
from penstock.sharing.options import AUTO, NONE, TREE, Planning
from penstock.sharing.plan import Basis, Priced, SharedPlan, Table
from penstock.sharing.unions import way_behind

WORTH = 0.95  # of the cost without sharing: what a shared plan must promise to stay below
SHARES = (1.0, 0.125)  # of the memory that are tried: smaller tables are nearer to the core
LARGER = 8.0  # times as much memory is tried next, up to all that there may be, as long as it makes plans cheaper
BUDGET = 0.2  # seconds of processor time for planning, unless told;
FIRST = 5.0  # times as much for the first plan of a stream, for which all has to be counted
WORTHWHILE = 0.1  # of what all records of a stream would take without tables: time for planning, unless told
ALWAYS = 0.2  # seconds that a first plan may take in any case, unless told
COUNTING = 0.05  # seconds: phantoms are looked for first only where there is more time, since all must be counted
MIDDLE = 0.75  # of the time for a tree: for the one of the fewest operations
SEARCHING = 0.65  # of that time; allocating memory and building the plan take the rest
MOST = 200  # candidates that are counted
MOST_FRONTED = 24  # queries up to which it is tried which of them do better with tables of their own
MOST_PASSED = 0.7  # of its records: a phantom that passes on more cannot pay
ALIKE = 50  # numbers of groups within about 1/ALIKE count as the same


@dataclass(frozen=True)
class Option:
    """A configuration with spaces and kinds of its tables (0: no table), within the memory of `engine`."""

    engine: EngineProblem
    configuration: Configuration
    spaces: tuple[float, ...]
    kinds: tuple[TableKind, ...]
    cost: float


def plan_stream(
    stream: Stream,
    kept: Stored,
    planning: Planning,
    known: Statistics,
    costs: Costs,
    memory: float,
    before: SharedPlan | None = None,
    most: float = 0.0,
    total: float = inf,
    always: float = ALWAYS,
) -> SharedPlan:
    """The plan for these queries, by what is known of the stream; `before` is the one that it may replace. `auto` may
    go beyond the memory, up to `most`, and thinks no longer than is worth it for `total` records, or `always`."""
    engine = EngineProblem(kept.relations, lattice(kept.relations), known, costs, memory)
    start = None if before is None or before.basis is None else before.basis.configuration
    considered = dict(_considered(engine, planning, start, most, total, always))
    best = min(considered, key=lambda name: considered[name].cost)
    if planning.plan == AUTO and considered[best].cost > WORTH * considered[NONE].cost:
        best = NONE
    return replace(_built(stream, kept, engine, best, considered), behind=way_behind(kept, known, costs, stream, total))


def reprice(plan: SharedPlan, known: Statistics, costs: Costs) -> float:
    """What the tables of a plan cost by newer statistics."""
    basis = plan.basis
    engine = EngineProblem(
        plan.relations, lattice(plan.relations), known, costs, 0.0 if basis is None else sum(basis.spaces)
    )
    if basis is None:
        return _bare(engine).cost
    return engine.price(basis.configuration, basis.spaces, [kind_named(priced.kind) for priced in basis.relations])


def _considered(
    engine: EngineProblem, planning: Planning, start: Configuration | None, most: float, total: float, always: float
) -> Iterator[tuple[str, Option]]:
    """The alternatives by name; of a plan that is asked for, just that."""
    if planning.plan == NONE or len(engine.queries) < 2:
        yield NONE, _bare(engine)
    elif planning.plan == AUTO:
        yield from _compared(engine, planning, start, most, total, always)
    else:
        tree = planning.plan == TREE
        alloc = ("fptas" if tree else "sl") if planning.alloc == AUTO else planning.alloc
        kind = (LRU if tree else DIRECT) if planning.tables == AUTO else kind_named(planning.tables)
        phantoms = () if tree else _worthwhile(engine)
        ends = inf if planning.plan_budget is None else thread_time() + SEARCHING * planning.plan_budget
        problem = engine.operations(kind) if tree else engine.problem(kind)
        chosen = choose(planning.plan, problem, alloc, objective=tree_cost, phantoms=phantoms, ends=ends, start=start)
        yield f"{planning.plan}-{alloc}", _limited(_option(engine, chosen, kind), planning.peak_load)


def _compared(
    engine: EngineProblem, planning: Planning, start: Configuration | None, most: float, total: float, always: float
) -> Iterator[tuple[str, Option]]:
    """What `auto` compares, as far as its time goes."""
    began, budget = thread_time(), BUDGET if planning.plan_budget is None else planning.plan_budget
    budget *= 1.0 if start is not None else FIRST
    bare = _bare(engine)
    yield NONE, bare
    if planning.plan_budget is None:
        budget = min(budget, max(always, WORTHWHILE * bare.cost * total / 1e9))
    found: list[Option] = []
    for name, option in _found(engine, planning, began + SEARCHING * budget, start, most):
        found.append(option)
        yield name, _limited(option, planning.peak_load)
    best = min(found, key=lambda option: option.cost)
    for larger in _roomier(best, most):
        yield _named("larger", "", larger.engine), _limited(larger, planning.peak_load)
        best = larger
    if planning.tables == AUTO and thread_time() < began + budget:
        mixed = _mixed(best)
        if len(set(_used(mixed))) > 1:
            yield _named("mixed", "", mixed.engine), _limited(mixed, planning.peak_load)


def _found(
    engine: EngineProblem, planning: Planning, ends: float, start: Configuration | None, most: float
) -> Iterator[tuple[str, Option]]:
    """The best trees, and the best phantoms as seed smap has them; at least one, whatever the time. First in the
    memory, then in more of it while that pays, from the best so far on; then in a part of it."""
    larger, best, going = engine.memory, inf, start
    while larger <= max(most, engine.memory):
        found = dict(_within(replace(engine, memory=larger), planning, ends, going))
        yield from found.items()
        if thread_time() >= ends:
            return
        cheapest = min(found.values(), key=lambda option: option.cost)
        if cheapest.cost > WORTH * best:
            break
        larger, best, going = larger * LARGER, cheapest.cost, cheapest.configuration
    for share in SHARES[1:]:
        yield from _within(replace(engine, memory=share * engine.memory), planning, ends, start)
        if thread_time() >= ends:
            return


def _within(
    engine: EngineProblem, planning: Planning, ends: float, start: Configuration | None
) -> Iterator[tuple[str, Option]]:
    """The best of each way in this memory, as far as time goes."""
    few = len(engine.queries) <= MOST_FRONTED and thread_time() + COUNTING < ends
    for way in WAYS if few else reversed(WAYS):
        if planning.tables in (AUTO, way.kind.name):
            alloc = way.alloc if planning.alloc == AUTO else planning.alloc
            yield _named(way.chooser, alloc, engine), way.find(engine, alloc, ends, start)
            if thread_time() >= ends:
                return


def _named(chooser: str, alloc: str, engine: EngineProblem) -> str:
    return f"{chooser}{'-' if alloc else ''}{alloc} in {engine.memory / 1024:.0f} KiB"


def _phantoms(engine: EngineProblem, alloc: str, ends: float, start: Configuration | None) -> Option:
    """By GC, which always starts without phantoms; the queries that do better with tables of their own get them, where
    there are not too many to try."""
    problem = engine.problem()
    bare = choose("gc", problem, alloc, fronts=False, objective=tree_cost, phantoms=_worthwhile(engine), ends=ends)
    found = _option(engine, bare, DIRECT)
    if len(engine.queries) > MOST_FRONTED or thread_time() >= ends:
        return found
    spaces = without_fronts(bare.configuration, problem, alloc, objective=tree_cost)
    return min(found, _priced(engine, bare.configuration, spaces, found.kinds), key=lambda option: option.cost)


def _tree(engine: EngineProblem, alloc: str, ends: float, start: Configuration | None) -> Option:
    """The tree of the fewest hash operations, and what comes of it when nanoseconds count: from the beginning those
    lead the greedy astray, since what it adds first is for the largest leaves alone."""
    began = thread_time()
    middle = began + MIDDLE * (ends - began)
    counted = choose(TREE, engine.operations(LRU), alloc, objective=tree_cost, ends=middle, start=start)
    timed = choose(TREE, engine.problem(LRU), alloc, objective=tree_cost, ends=ends, start=counted.configuration)
    return min((_option(engine, choice, LRU) for choice in (counted, timed)), key=lambda option: option.cost)


@dataclass(frozen=True)
class Way:
    """How `auto` finds the best plan with tables of one kind."""

    kind: TableKind
    chooser: str
    alloc: str
    find: Callable[[EngineProblem, str, float, Configuration | None], Option]


WAYS = (Way(DIRECT, "gc", "sl", _phantoms), Way(LRU, TREE, "lagrange", _tree))


def _option(engine: EngineProblem, choice: ChosenTables, kind: TableKind) -> Option:
    return _roomy(_priced(engine, choice.configuration, choice.spaces, (kind,) * len(choice.spaces)))


def _roomy(option: Option) -> Option:
    """The same with what it leaves of the memory as room in the tables that fill (`TableKind.fills`): there may be more
    groups than expected."""
    filling = sum(space for space, kind in zip(option.spaces, option.kinds, strict=True) if kind.fills)
    left = option.engine.memory - sum(option.spaces)
    if not filling or left <= 0.0:
        return option
    factor = min(DOUBT, 1.0 + left / filling)
    spaces = [s * factor if kind.fills else s for s, kind in zip(option.spaces, option.kinds, strict=True)]
    return _priced(option.engine, option.configuration, spaces, option.kinds)


def _priced(
    engine: EngineProblem, configuration: Configuration, spaces: Sequence[float], kinds: Sequence[TableKind]
) -> Option:
    cost = engine.price(configuration, spaces, kinds)
    return Option(engine, configuration, tuple(spaces), tuple(kinds), cost)


def _mixed(option: Option) -> Option:
    """The same with tables of another kind where that is cheaper: direct-mapped ones high up, where flows are long or
    all groups have room, LRU below. What that leaves of the memory is divided again."""
    engine, configuration, spaces = option.engine, option.configuration, option.spaces
    best = option
    for i, space in enumerate(spaces):
        for kind in (kind for kind in KINDS if space and kind != option.kinds[i]):
            kinds = [*best.kinds[:i], kind, *best.kinds[i + 1 :]]
            best = min(best, _priced(engine, configuration, spaces, kinds), key=lambda option: option.cost)
    again = allocator("lagrange")(engine.planted(configuration, spaces, best.kinds))
    return _roomy(min(best, _priced(engine, configuration, again, best.kinds), key=lambda option: option.cost))


def _roomier(option: Option, most: float) -> Iterator[Option]:
    """The same tables in more memory, as long as that makes them cheaper: where time was too short to look for others
    there."""
    memory = option.engine.memory * LARGER
    while memory <= most and any(option.spaces):
        engine = replace(option.engine, memory=memory)
        spaces = allocator("lagrange")(engine.planted(option.configuration, option.spaces, option.kinds))
        larger = _priced(engine, option.configuration, spaces, option.kinds)
        if larger.cost > WORTH * option.cost:
            return
        yield larger
        option, memory = larger, memory * LARGER


def _used(option: Option) -> Iterator[TableKind]:
    """The kinds of the tables that there are."""
    return (kind for kind, space in zip(option.kinds, option.spaces, strict=True) if space)


def _worthwhile(engine: EngineProblem) -> list[Grain]:
    """Candidates that may pay: those that pass on much fewer records than they take, and of those that have the same
    groups (as attributes that determine others do) the finest, which feeds the most."""
    known, limit = engine.known, engine.memory
    finest: dict[tuple[int, int], list[Grain]] = {}
    for grain in sorted(candidates(engine.queries, MOST), key=fineness, reverse=True):
        groups, words = known.groups(grain), engine.words(grain)
        each = groups / known.turns(grain)
        passed = max(groups / known.rows, rate(each, limit / (8 * (words + 2)), known.length(grain, 1)))
        if passed > MOST_PASSED:
            continue
        alike = finest.setdefault((round(ALIKE * log(groups)), words), [])
        if not any(feeds(finer, grain) for finer in alike):
            alike.append(grain)
    return [grain for alike in finest.values() for grain in alike]


def _limited(option: Option, limit: float | None) -> Option:
    """The same with a flush at the end of a task that takes at most `limit` nanoseconds (seed smap, Sec. 8.5.2), also
    where there are more groups than expected."""
    if limit is None:
        return option
    engine, configuration, kinds = option.engine, option.configuration, option.kinds
    load = engine.peak(configuration, kinds)
    spaces = within_peak(
        configuration, option.spaces, load, limit, lambda spaces: engine.price(configuration, spaces, kinds)
    )
    return _priced(engine, configuration, spaces, kinds)


def _bare(engine: EngineProblem) -> Option:
    """No tables: every query is fed by the stream."""
    configuration = Configuration(tuple(Node(grain, STREAM, True) for grain in engine.queries))
    return _priced(engine, configuration, (0.0,) * len(engine.queries), (DIRECT,) * len(engine.queries))


def _built(
    stream: Stream, kept: Stored, engine: EngineProblem, best: str, considered: Mapping[str, Option]
) -> SharedPlan:
    chosen, queries = considered[best], engine.queries
    configuration, kinds = chosen.configuration, chosen.kinds
    names = _names(configuration.nodes, queries, kept.labels)
    tree = engine.filled(configuration, chosen.spaces, kinds).planted(configuration, chosen.spaces, kinds)
    buckets = whole_buckets(tree, chosen.spaces)
    passed = responses(tree, buckets)
    priced = tuple(
        Priced(
            names[node.grain], configuration.depth(i), tree.groups[i], int(buckets[i]), tree.entries[i],
            tree.lengths[i], passed[i][1], passed[i][0], engine.share(node.grain), tree.probe[i], tree.evict[i],
            queries[node.grain] if node.query else (), kinds[i].name,
        )
        for i, node in enumerate(configuration.nodes)
    )  # fmt: skip
    flushing = flush_cost(tree, buckets, [entries for entries, _ in passed])
    basis = Basis(
        best, int(sum(chosen.spaces)), engine.known.rows, engine.costs, chosen.cost, flushing,
        tuple((name, option.cost) for name, option in considered.items()), priced, configuration, chosen.spaces,
    )  # fmt: skip
    tables = _tables(configuration, names, queries, priced)
    return SharedPlan(stream, kept, text(configuration, names.__getitem__), tables, basis)


def _names(
    nodes: Sequence[Node], queries: Mapping[Grain, tuple[str, ...]], labels: Mapping[str, str]
) -> dict[Grain, str]:
    """Relations by their queries, phantoms by their columns; each different."""
    found: dict[Grain, str] = {}
    taken: set[str] = set()
    for node in nodes:
        name = "+".join(labels[name] for name in queries[node.grain]) if node.query else name_of(node.grain)
        given, number = name, 2
        while given in taken:
            given, number = f"{name}~{number}", number + 1
        found[node.grain] = given
        taken.add(given)
    return found


def _tables(
    configuration: Configuration,
    names: Mapping[Grain, str],
    queries: Mapping[Grain, tuple[str, ...]],
    priced: Sequence[Priced],
) -> tuple[Table, ...]:
    """The tables of the tree; a relation without buckets is passed by: what it would feed, its feeder feeds."""
    place: list[int] = []  # the table that takes what falls to a node
    made: list[Table] = []
    fed: list[list[str]] = []
    for node, one in zip(configuration.nodes, priced, strict=True):
        above = STREAM if node.parent == STREAM else place[node.parent]
        if one.buckets:
            policy = kind_named(one.kind).replacement(one.length)
            made.append(Table(names[node.grain], above, (), one.buckets, policy))
            fed.append([])
            above = len(made) - 1
        place.append(above)
        if node.query and above != STREAM:
            fed[above] += queries[node.grain]
    return tuple(replace(table, leaves=tuple(leaves)) for table, leaves in zip(made, fed, strict=True))
