"""Relations: what is aggregated and stored of a stream.

A relation says which records it takes, what it groups them by, and what it keeps of each group. It is named by its
content, so two queries that need the same have the same relation. Planning (`sharing`), the tables of a task
(`runtime.tables`) and the blocks of segments (`state.segments`) all mean this by the word.

    Query ──► wanted_of ──► stored once, by rule (`relations.storing`) ──► closed by queries (`relations.closing`)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from hashlib import blake2b

from penstock.aggregates.base import State
from penstock.aggregates.count import COUNTED
from penstock.aggregates.details.function import Loss
from penstock.aggregates.extremes import GREATEST, LEAST
from penstock.aggregates.registry import detail_of, squares_of, states_of
from penstock.aggregates.shape import Shape
from penstock.aggregates.squares import REPEATED
from penstock.logical.expressions import Aggregate, Case, Column, Computed, Expression, Prefix
from penstock.logical.query import WEIGHT, Attribute, Query
from penstock.logical.render import render
from penstock.logical.types import TIMESTAMP, Kind, Type
from penstock.logical.window import Panes, Window
from penstock.relations.component import (
    Component,
    Tag,
    dictionary_component,
    inet6_component,
    null_component,
    pane_component,
    sieve_component,
    value_component,
)
from penstock.relations.layout import Part

IPV4_BITS = 32
EXACT, APPEND = "exact", "append"  # a leaf has each group once, or a row for everything that falls to it


@dataclass(frozen=True)
class Choice:
    """Which records a relation takes, but for those that are late.

    `columns` are all that its queries read: a value in one of them that does not fit its type makes the record
    malformed for these queries. `gap` is (slide, length) where places between two windows belong to none.
    """

    where: Expression | None = None
    columns: frozenset[str] = frozenset()
    gap: tuple[int, int] | None = None


@dataclass(frozen=True)
class Relation:
    """`attributes` stand in canonical order; `arguments` are the columns that `states` are of.

    `landmark` is the version of the app that brought its landmark queries, None for all others: landmark windows that
    begin at different times need panes of their own. Of a relation that is not `booked` no record counts in an
    account. `slots` is how many of the attributes, from the first on, decide a group's slot; None: all of them.
    `loss`: rows of rare values are left out when a run is written. `of`: the side of a join that alone reads it.
    `sieved` are the choices of the queries that are rolled up from it, where they differ: a row has for each a bit that
    says "not for these", and `choice` takes what any of them takes.
    """

    name: str
    stream: str
    attributes: tuple[Attribute, ...]
    panes: Panes
    choice: Choice
    arguments: tuple[Column | Computed, ...]
    states: tuple[State, ...]
    landmark: int | None = None
    booked: bool = True
    table: str = EXACT
    slots: int | None = None
    loss: Loss | None = None
    of: str = ""
    sieved: tuple[Choice, ...] = ()

    @cached_property
    def pane(self) -> Component:
        return pane_component(self.panes)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The components of the key, the pane's number first, each once (`src` and `src/24` share one)."""
        sieves = (Part(sieve_of(choice)) for choice in self.sieved)
        return joined_parts((Part(self.pane), *_parts_of(self.attributes), *sieves))

    @cached_property
    def key(self) -> frozenset[Attribute]:
        """What it groups by, in no order."""
        return frozenset(self.attributes)

    @cached_property
    def grouped(self) -> frozenset[str]:
        """The columns that it groups by, or by prefixes of."""
        return frozenset(a.column.name if isinstance(a, Prefix) else a.name for a in self.attributes)

    @cached_property
    def slot_key(self) -> tuple[Component, ...]:
        """The components whose hash decides the slot of a group."""
        return tuple(part.component for part in joined_parts(_parts_of(self.attributes[: self.slots])))

    @cached_property
    def choices(self) -> frozenset[Choice]:
        """Those of `sieved`."""
        return frozenset(self.sieved)

    @property
    def outer(self) -> tuple[Attribute, ...]:
        """Of a relation with details: the keys of the query."""
        return self.attributes[: self.slots or 0]

    @cached_property
    def slot_parts(self) -> frozenset[Part]:
        """The same, as fine as they stand in the key."""
        return frozenset(part for part in self.parts if part.component in self.slot_key)

    @cached_property
    def types(self) -> dict[str, Type]:
        """The types of the columns, made or read, that keys and states are of."""
        whole = (a.column if isinstance(a, Prefix) else a for a in self.attributes)
        return {column.name: column.type for column in (*whole, *self.arguments)}

    @cached_property
    def shape(self) -> Shape:
        """How wide the states are before any value is known."""
        return Shape.of(self.types)

    @cached_property
    def coded_parts(self) -> tuple[Component, ...]:
        """The components of the key that are codes of a dictionary."""
        strings = {value_component(name) for name in self.shape.strings}
        names = (part.component for part in self.parts)
        return tuple(name for name in names if name.tag is Tag.INET6 or name in strings)

    @cached_property
    def coded_states(self) -> dict[State, Component]:
        """The states that refer to dictionaries, and to which."""
        forms = self.shape.forms(self.states)
        return {s: dictionary_component(s.column, form.facts.kind) for s, form in forms.items() if form.coded}

    @cached_property
    def computed(self) -> tuple[Computed, ...]:
        """The columns that the relation makes itself."""
        found = (a for a in (*self.attributes, *self.arguments) if isinstance(a, Computed))
        return tuple(dict.fromkeys(found))

    @cached_property
    def lacking(self) -> frozenset[str]:
        """Arguments without a value for some records, as FILTER makes them: states keep how many there were."""
        made = ((a.name, a.expression) for a in self.arguments if isinstance(a, Computed))
        return frozenset(name for name, one in made if isinstance(one, Case) and one.default is None)


def named(relation: Relation) -> Relation:
    """The same with the name that its content has."""
    choice = relation.choice
    content = (
        relation.stream, [attribute_text(a) for a in relation.attributes], relation.pane.text,
        "" if choice.where is None else render(choice.where), sorted(choice.columns), choice.gap,
        [(state.kind, state.column) for state in relation.states], relation.landmark, relation.booked, relation.table,
        relation.slots,
    )  # fmt: skip
    # Others keep the names that they have in checkpoints.
    more = ("" if relation.loss is None else repr(relation.loss)) + (f"of {relation.of}" if relation.of else "")
    more += "".join(f" {sieve_of(choice).text}" for choice in relation.sieved)
    return replace(relation, name=blake2b((repr(content) + more).encode(), digest_size=6).hexdigest())


def choice_text(choice: Choice) -> str:
    """What a choice says, the same in all processes."""
    where = "" if choice.where is None else render(choice.where)
    return repr((where, sorted(choice.columns), choice.gap))


@lru_cache(maxsize=1024)
def sieve_of(choice: Choice) -> Component:
    """The bit of rows that says that this choice does not take them."""
    return sieve_component(blake2b(choice_text(choice).encode(), digest_size=6).hexdigest())


def attribute_text(attribute: Attribute) -> str:
    """As SQL has it: `src/24`."""
    return render(attribute.expression if isinstance(attribute, Computed) else attribute)


def _parts_of(attributes: Iterable[Attribute]) -> Iterable[Part]:
    return (part for attribute in attributes for part in attribute_parts(attribute))


def joined_parts(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Each component once, as fine as any asks for it."""
    kept: dict[Component, int] = {}
    for part in parts:
        kept[part.component] = min(part.drop, kept.get(part.component, part.drop))
    return tuple(Part(component, drop) for component, drop in kept.items())


def attribute_parts(attribute: Attribute) -> tuple[Part, ...]:
    """Components of a grouping attribute, in canonical order.

    A prefix masks the IPv4 number of its address and has a code of its own for the IPv6 side.
    """
    match attribute:
        case Prefix(column, length):
            name, drop = column.name, max(0, IPV4_BITS - length)
            return (
                Part(value_component(name), drop),
                Part(inet6_component(name, length)),
                Part(null_component(name)),
            )
        case Column(name, kind) | Computed(name, _, kind) if kind.kind is Kind.INET:
            return (Part(value_component(name)), Part(inet6_component(name)), Part(null_component(name)))
    return (Part(value_component(attribute.name)), Part(null_component(attribute.name)))


@dataclass(frozen=True)
class Wanted:
    """What a query is finished from: its groups, and finer relations whose rows some aggregates are made of; `asked`
    are the texts of those, for each. Of a query that is `weighed` the first of these has the groups told apart by
    weight."""

    groups: Relation
    details: tuple[Relation, ...] = ()
    asked: tuple[tuple[str, ...], ...] = ()

    @property
    def relations(self) -> tuple[Relation, ...]:
        return (self.groups, *self.details)


def relation_of(query: Query, since: int = 0) -> Relation:
    """The groups that a query is finished from, if nothing is shared; `since` is the version of the app that brought
    it."""
    attributes = sorted(query.attributes, key=attribute_text)
    plain = [a for a in query.aggregates if detail_of(a) is None]
    arguments = {a.argument for a in plain if a.argument is not None and not isinstance(a.argument, Prefix)}
    window = query.window
    return named(
        Relation(
            "",
            query.stream,
            tuple(attributes),
            window.panes,
            Choice(query.where, query.columns, (window.slide, window.length) if window.gaps else None),
            tuple(sorted(arguments, key=lambda argument: argument.name)),
            tuple(sorted(states_of(query.aggregates))),
            since if window.landmark else None,
        )
    )


def wanted_of(query: Query, since: int = 0) -> Wanted:
    """All that a query is finished from."""
    groups = relation_of(query, since)
    finer: dict[tuple[tuple[Attribute, ...], Loss | None], list[Relation]] = {}
    asked: dict[tuple[tuple[Attribute, ...], Loss | None], list[str]] = {}
    if query.weighed:
        one = weighed_relation(query, groups)
        finer[one.attributes, one.loss], asked[one.attributes, one.loss] = [one], [""]
    for aggregate in query.aggregates:
        if detail_of(aggregate) is not None:
            one = detail_relation(groups, aggregate, query.weight)
            finer.setdefault((one.attributes, one.loss), []).append(one)
            asked.setdefault((one.attributes, one.loss), []).append(render(aggregate))
    return Wanted(groups, tuple(map(together, finer.values())), tuple(map(tuple, asked.values())))


def weighed_relation(query: Query, groups: Relation) -> Relation:
    """The groups of a query, told apart by what their records stand for; with the squares of what is summed up. Where
    a record may be joined with several rows it counts so often: then also of how often."""
    assert query.weight is not None
    several = () if query.join is None else (query.weight,)
    squares = {*squares_of(query.aggregates, bool(several)), *(REPEATED.state(one.name) for one in several)}
    keys = groups.attributes
    return named(
        replace(
            groups,
            attributes=(*keys, query.weight),
            arguments=tuple(sorted({*groups.arguments, *several}, key=lambda argument: argument.name)),
            states=tuple(sorted({*groups.states, *squares})),
            slots=len(keys) or None,
        )
    )


def detail_relation(groups: Relation, aggregate: Aggregate, weight: Column | None = None) -> Relation:
    """The finer relation that an aggregate is made of, if it is stored for that one alone. The keys of the query come
    first and decide the slot: so a slot has whole groups."""
    detail = detail_of(aggregate)
    assert detail is not None
    added = [
        detail.attribute,
        *([] if aggregate.test is None else [aggregate.test]),
        *([] if weight is None else [weight]),
    ]
    keys, finer = groups.attributes, [one for one in dict.fromkeys(added) if one not in groups.attributes]
    return named(
        replace(
            groups,
            attributes=(*keys, *sorted(finer, key=attribute_text)),
            arguments=detail.arguments,
            states=tuple(sorted(detail.states)),
            # Of a query without keys all would stand in one slot.
            slots=len(keys) if keys and finer else None,
            loss=detail.loss if finer else None,
        )
    )


def together(same: Sequence[Relation]) -> Relation:
    """Relations of the same groups as one, with the states of all."""
    first = min(same, key=lambda one: one.slots is None)  # slots that hold whole groups of a coarser query are kept
    arguments = {argument for one in same for argument in one.arguments}
    states = {state for one in same for state in one.states}
    return named(
        replace(
            first,
            arguments=tuple(sorted(arguments, key=lambda argument: argument.name)),
            states=tuple(sorted(states)),
        )
    )


def bounds_relation(stream: str, panes: Panes, time: str) -> Relation:
    """The first and last time in each pane of rows, of all records: windows of rows are labelled with them."""
    kept = tuple(sorted((COUNTED.state(time), LEAST.state(time), GREATEST.state(time))))
    choice, arguments = Choice(None, frozenset((time,))), (Column(time, TIMESTAMP),)
    return named(Relation("", stream, (), panes, choice, arguments, kept, booked=False))


def picks_relations(query: Query, since: int = 0) -> Iterator[tuple[Relation, Window]]:
    """How many records of each weight lie in each pane of the streams of a query, whatever it says of them: estimates
    are made of all picks of a stream. With the window that the query has there; only where delays are promised."""
    if query.promise is not None:
        for stream in query.inputs:
            for window in query.windows_on(stream):
                landmark = since if window.landmark else None
                made = Relation("", stream, (WEIGHT,), window.panes, Choice(), (), (), landmark, booked=False)
                yield named(made), window
