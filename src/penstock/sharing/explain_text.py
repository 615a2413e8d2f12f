"""An explained plan as text for people: the plan and why, unit costs, the tree with its figures, who serves whom.

Works on the dict of `sharing.explain.explain_plan` alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from textwrap import wrap

from penstock.relations.relation import APPEND
from penstock.sharing.explain import WAY, Explained
from penstock.sharing.explain_joins import COLUMNS as PLAN_COLUMNS
from penstock.sharing.explain_joins import head_lines, measured_lines, plan_rows, size
from penstock.sharing.model.kinds.registry import is_bounded, replacement_named

WIDTH = 118
LABEL = 15  # columns of what stands at the left of the first lines
MANY_ROWS, MANY_SHARE = 10_000, 0.1  # details that are worth a warning: so many rows, and so many of a task's tuples
LONGEST = 44  # columns of a relation's name in the tree
NAMES = {"probe": "c1, a probe", "recent": "c1 of LRU tables", "insert": "c2, an insert", "lone": "c2, one leaf"}
COLUMNS = ("", "buckets", "memory", "groups", "fed", "collide", "evicted", "flushed", "ns")
GROUP = ("segment", "merge", "overlapping")


def explained_text(explained: Iterable[Explained]) -> str:
    """All plans of an app."""
    return "\n\n\n".join(plan_text(one) for one in explained)


def plan_text(explained: Explained) -> str:
    """The explanation as text."""
    parts = [_head(explained), _unit_costs(explained), _tree(explained), _reasons(explained), _queries(explained)]
    parts += [_join(joined) for joined in explained["joins"]]
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def _head(explained: Explained) -> list[str]:
    rows, task_rows = explained["input_rows"], explained["task_rows"]
    stream = f"{explained['stream']} from {explained['source']}"
    stream += f", {rows:,} rows" if rows is not None else ""
    stream += f", in tasks of {task_rows:,.0f}" if task_rows is not None else ""
    lines = [
        _labelled("stream", stream),
        _labelled("configuration", explained["configuration"]),
        _labelled("plan", f"{explained['chosen']}, {explained['why']}"),
    ]
    if len(explained["considered"]) > 1:
        costs = [f"{name} {cost:.1f}" for name, cost in explained["considered"].items()]
        lines.append(_labelled("considered", ", ".join(costs) + " ns a tuple"))
    lines += [*_stored(explained), *_cost(explained)]
    if explained["memory"]:
        lines.append(_labelled("memory", f"{size(explained['memory'])} for the tables of a task before its leaves"))
    return lines


def _stored(explained: Explained) -> Iterator[str]:
    """How many relations there are, where that is fewer than queries."""
    stored = [relation["closings"] for relation in explained["relations"] if relation["kind"] == "query"]
    queries = sum(map(len, stored))
    if queries > len(stored):
        relations = "1 relation" if len(stored) == 1 else f"{len(stored)} relations"
        yield _labelled("stored", f"{relations}, from which {queries} queries close")


def _cost(explained: Explained) -> Iterator[str]:
    cost, measured = explained["cost"], explained.get("measured")
    if cost["probes_per_tuple"] is not None:
        known = cost["nanoseconds"] is not None
        beside = f", {cost['probes_without_sharing']:.3g} without sharing" if known else " at most"
        yield _labelled("work", f"{cost['probes_per_tuple']:.3g} hash operations a tuple{beside}")
    if cost["of_no_relation"] is not None and cost["of_no_relation"] >= 0.05:
        yield _labelled("besides", f"{cost['of_no_relation']:.1f} ns a tuple that belong to no relation")
    if cost["end_of_task"]:
        yield _labelled("end of a task", f"{cost['end_of_task'] / 1e6:.1f} ms to flush its tables")
    yield from _behind(explained)
    yield from _way(explained)
    if measured is not None:
        text = f"{measured['cost']:.1f} ns and {measured['probes_per_tuple']:.3g} hash operations a tuple"
        tasks = "1 task" if measured["tasks"] == 1 else f"{measured['tasks']:,} tasks"
        each = f" of {measured['task_rows']:,.0f}" if measured["tasks"] > 1 else ""
        yield _labelled("measured", f"{text}, of {measured['rows']:,} in {tasks}{each}")


def _behind(explained: Explained) -> Iterator[str]:
    """What partial groups take that no table can spare: predicted, and in brackets counted."""
    known, counted = explained["behind"], (explained.get("measured") or {}).get("behind") or {}

    def both(name: str, form: str) -> str:
        beside = "" if counted.get(name) is None else f" ({counted[name]:{form}})"
        return f"{known[name]:{form}}{beside}"

    if known["partials_per_tuple"] is not None:
        groups = f"{both('partials_per_tuple', '.3g')} partial groups a tuple"
        yield _labelled("behind leaves", groups)


def _way(explained: Explained) -> Iterator[str]:
    """The whole way of a record, part by part."""
    parts = explained["parts"]
    if parts["total"]["predicted"] is None:
        return
    rows = [["", *WAY, "total"]]
    for name in parts["total"]:
        rows.append([name, *(_decimal(parts[part][name]) for part in (*WAY, "total"))])
    yield _labelled("ns a tuple", "from the record to the rows of results, before sinks")
    yield from _aligned(rows, " " * LABEL)
    total, sink = parts["total"], parts.get("sink", {}).get("counted")
    if total.get("counted") and total["predicted"]:
        off = f"counted {total['counted'] / total['predicted']:.2f} times what was predicted"
        off += f", {total['counted'] / total['fitted']:.2f} times at the costs of this run"
        yield _labelled("", off + (f"; sinks {sink:.1f} more" if sink is not None else ""))


def _labelled(label: str, text: str) -> str:
    return f"{label:<{LABEL}}{text}"


def _unit_costs(explained: Explained) -> list[str]:
    """c1 and c2 by the size of the table, as they were calibrated; and as they follow from the counters."""
    costs, fitted = explained["unit_costs"], (explained.get("measured") or {}).get("fitted")
    return [*(_calibrated(costs) if costs is not None else ()), *(_fitted(fitted) if fitted is not None else ())]


def _calibrated(costs: Explained) -> Iterator[str]:
    sizes = sorted({point[0] for name in NAMES for point in costs[name]})
    known = {name: dict(map(tuple, costs[name])) for name in NAMES}
    yield _labelled("unit costs", "ns on this machine, by the size of the table")
    yield from _aligned([
        ["", *(size(each) for each in sizes)],
        *([what, *(_decimal(known[name].get(each)) for each in sizes)] for name, what in NAMES.items()),
    ], " " * LABEL)  # fmt: skip
    more = (("fold", "a state folded"), ("word", "a word of a key beyond two"), ("passing", "an entry passed on"))
    yield _labelled("", ", ".join(f"{costs[name]:.1f} {what}" for name, what in more))
    each = ", ".join(f"{costs[name]['row']:.1f} + {costs[name]['column']:.1f} a column {name}" for name in GROUP)
    yield _labelled("", f"of a partial group {each}")
    rolled = f"{costs['rolled']['row']:.1f} for a query, {costs['rolled']['column']:.1f} for an attribute"
    yield _labelled("", f"of a row that is rolled up {rolled}; {costs['grouped']:.1f} a column of what comes out")
    shown = f"{costs['finish']:.1f} a column of a result, {costs['shown']:.1f} an address"
    shown += f", {costs['ordered']:.1f} a row that is put in order"
    yield _labelled("", shown)
    names = "merging", "read", "coding", "close", "spelled"
    merging, read, coding, close, spelled = (f"{costs[name] / 1000:.0f}" for name in names)
    taken = f"a merge {merging} µs, a roll-up {read} and {coding} an attribute"
    yield _labelled("", f"of each item {taken}, a query {close} and {spelled} an address")


def _fitted(fitted: Explained) -> Iterator[str]:
    yield _labelled("fitted", "to the counters by least squares, folding included (in brackets what was expected)")
    for name, one in (("probe", fitted["probe"]), ("insert", fitted["insert"])):
        if one is not None:
            beside = "" if one["expected"] is None else f" ({one['expected']:.1f})"
            passing = f" and {one['passing']:.1f} an eviction" if one.get("passing") is not None else ""
            error = f"{one['points']:,} counts, off by {100 * one['error']:.0f} % on average"
            error += f"; {one['left_out']:,} left out, of disturbed tasks" if one["left_out"] else ""
            yield _labelled("", f"{NAMES[name]} {one['cost']:.1f}{beside}{passing}: {error}")
    if fitted["ratio"] is not None:
        yield _labelled("", f"c2/c1 = {fitted['ratio']:.2f}")


def _tree(explained: Explained) -> list[str]:
    """The stream, and below it tables and queries, each with its figures; measured ones in a line of their own."""
    measured, rows = "measured" in explained, [list(COLUMNS)]
    known = measured or explained["cost"]["nanoseconds"] is not None
    title = explained["stream"] + ("   (per tuple; groups and flushed per task)" if known else "")
    rows.append([title, *[""] * (len(COLUMNS) - 1)])
    for lead, gap, relation in _walk(explained["relations"], None, ""):
        rows.append([lead + _name(relation), *_figures(relation, relation["predicted"])])
        if measured:
            rows.append([gap + "  measured", *_figures(relation, relation["measured"] or {}, count=False)])
    return _aligned(rows, "")


def _walk(relations: list[Explained], parent: int | None, indent: str) -> Iterator[tuple[str, str, Explained]]:
    """Each relation with what stands before it, and before further lines of it; parents first."""
    mine = [(number, one) for number, one in enumerate(relations) if one["parent"] == parent]
    for number, relation in mine:
        last = number == mine[-1][0]
        gap = indent + ("   " if last else "│  ")
        yield indent + ("└─ " if last else "├─ "), gap, relation
        if is_bounded(relation["table"]):
            yield from _walk(relations, number, gap)


def _name(relation: Explained) -> str:
    what = {"front": " (table)", "phantom": " (phantom)", "bounds": " (times of panes)", "picks": ""}.get(
        relation["kind"], ""
    )
    name = relation["name"]
    return (name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…") + what


def _figures(relation: Explained, figures: Explained, count: bool = True) -> list[str]:
    shown = f"{relation['buckets']:,}" if is_bounded(relation["table"]) else relation["table"]
    buckets = shown if count else ""
    rate, bytes_ = figures.get("collision_rate"), figures.get("bytes")
    return [
        buckets,
        "" if bytes_ is None else size(bytes_),
        _count(figures.get("groups")),
        _rate(figures.get("probes_per_tuple")),
        "" if rate is None else f"{100 * rate:.2f} %",
        _rate(figures.get("evictions_per_tuple")),
        _count(figures.get("flushed_per_task")),
        _decimal(figures.get("cost")),
    ]


def _reasons(explained: Explained) -> list[str]:
    """Which table serves which query, and why."""
    lines: list[str] = []
    costs = {one["name"]: one for one in explained["phantoms"]}
    for relation in explained["relations"]:
        if is_bounded(relation["table"]):
            lines += _table_lines(relation, costs.get(relation["name"]))
    alone = [one["name"] for one in explained["relations"] if one["parent"] is None and one["kind"] == "query"]
    if alone and explained["phantoms"]:
        lines += _wrapped(f"fed by the stream: {', '.join(alone)}", "  ")
        those = "it" if len(alone) == 1 else "them"
        lines += _wrapped(f"no phantom feeds {those} cheaper, with what it would cost the others", "    ")
    return ["who serves whom", *lines] if lines else []


def _table_lines(table: Explained, costs: Explained | None) -> Iterator[str]:
    """All about a phantom; of a query's own table just whom it serves."""
    serves = f"serves {', '.join(table['queries'])}"
    if table["kind"] == "front":
        yield from _wrapped(f"table before {table['name']}: {serves}; {_replacement(table)}", "  ")
        return
    yield from _wrapped(f"phantom {table['name']}", "  ")
    key = table["key"]
    parts = [f"columns {', '.join(key['columns'])}" if key["columns"] else "", f"panes of {', '.join(key['panes'])}"]
    if key["choices"]:
        parts.append(f"whether {'; '.join(key['choices'])}")
    yield from _wrapped(f"key: {', '.join(part for part in parts if part)}", "    ")
    yield from _wrapped(f"keeps {', '.join(table['states'])}", "    ")
    yield from _wrapped(serves, "    ")
    if costs is not None:
        yield from _wrapped(
            f"why: with all that it feeds {costs['cost']:.1f} ns a tuple; fed by the stream, its queries would cost "
            f"{costs['cost_if_fed_by_stream']:.1f}",
            "    ",
        )
    yield from _wrapped(_replacement(table), "    ")


def _replacement(table: Explained) -> str:
    length = table["predicted"].get("flow_length")
    flows = "" if length is None else f"flows of {length:.1f} tuples: "
    replacement = replacement_named(table["replacement"])
    return f"{flows}{replacement.name}, {replacement.says}"


def _queries(explained: Explained) -> list[str]:
    """Every query with what it groups by, and what it closes from where that is not its own alone."""
    leaves = [relation for relation in explained["relations"] if relation["kind"] == "query"]
    closings = [(closing, relation) for relation in leaves for closing in relation["closings"]]
    width = max((len(closing["query"]) for closing, _ in closings), default=0)
    lines = ["queries"]
    for closing, relation in closings:
        keys = ", ".join(closing["group_by"]) or "all tuples together"
        lines.append(f"  {closing['query']:<{width}}  per {closing['window']}: {keys}")
        for text in (*_closing(closing, relation), *_details(closing["query"], leaves, explained["task_rows"])):
            lines += _wrapped(text, " " * (width + 6))
    return lines


def _details(query: str, leaves: list[Explained], task_rows: float | None) -> Iterator[str]:
    """What a query keeps in detail, what that takes, and what would take less where it is much."""
    for relation in leaves:
        for one in relation["details"]:
            if one["query"] != query:
                continue
            figures = relation["predicted"]
            rows, size_ = figures.get("groups"), figures.get("bytes")
            takes = "" if rows is None or size_ is None else f": {rows:,.0f} rows, {size(size_)} a task"
            asked = ", ".join(one["asked"])
            yield f"in detail for {asked}{takes}" if asked else f"told apart by what records stand for{takes}"
            many = rows is not None and rows >= MANY_ROWS and (task_rows is None or rows >= MANY_SHARE * task_rows)
            if many and one["approximate"]:
                yield f"warning: that is much; {', '.join(one['approximate'])}"


def _closing(closing: Explained, relation: Explained) -> Iterator[str]:
    if closing["joined"]:
        yield closing["joined"]
        if relation["table"] == APPEND:
            yield "late: a row for each record"
        if closing["grows"]:
            yield "until now: what is kept grows with the distinct values of its key"
    if closing["how"] == "roll up" and any(one["asked"] == [""] for one in relation["details"]):
        yield "promises a delay: what a burst leaves unread is estimated from the records that were read"
        return
    if closing["how"] == "roll up":
        yield f"rolled up from {relation['name']} when a window closes; not stored itself"
        return
    yield f"keeps {', '.join(relation['states'])}"
    others = [one["query"] for one in relation["closings"] if one["how"] == "finish" and one is not closing]
    if others:
        yield f"stored once with {', '.join(others)}"
    if relation["where"]:
        yield f"where {relation['where']}"


def _join(joined: Explained) -> list[str]:
    """The plans of a join whose first stream this is."""
    plans = plan_rows(joined)
    table = _aligned([list(PLAN_COLUMNS), *plans], "  ") if plans else []
    return [*head_lines(joined), *table, *measured_lines(joined)]


def _wrapped(text: str, indent: str) -> list[str]:
    more = indent + "  "
    return wrap(text, WIDTH, initial_indent=indent, subsequent_indent=more, break_long_words=False,
                break_on_hyphens=False)  # fmt: skip


def _aligned(rows: list[list[str]], indent: str) -> list[str]:
    """Columns as wide as needed, the first to the left and the others to the right."""
    used = [column for column in range(len(rows[0])) if column == 0 or any(row[column] for row in rows[1:])]
    widths = {column: max(len(row[column]) for row in rows) for column in used}
    return [
        (indent + "  ".join(f"{row[c]:<{widths[c]}}" if c == 0 else f"{row[c]:>{widths[c]}}" for c in used)).rstrip()
        for row in rows
    ]


def _rate(each: float | None) -> str:
    return "" if each is None else f"{each:.4f}"


def _count(number: float | None) -> str:
    return "" if number is None else f"{number:,.0f}"


def _decimal(number: float | None) -> str:
    return "" if number is None else f"{number:.1f}"
