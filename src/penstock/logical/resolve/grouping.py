"""GROUP BY: its entries to keys and the Gigascope time bucket, with the names the select list gives them."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from penstock.lang.ast import Duration, Item, Select, Word, span_of
from penstock.lang.text import AppText
from penstock.logical.expressions import Bucket, Computed, Expression
from penstock.logical.expressions import columns as columns_of
from penstock.logical.query import Attribute
from penstock.logical.resolve.scopes import GroupScope, StreamColumns, TupleScope, unwrap, word_of
from penstock.logical.resolve.windows import MINUTE
from penstock.logical.types import Kind
from penstock.logical.values import constants
from penstock.logical.values.aggregates import uses_aggregates
from penstock.logical.values.attributes import attribute_of
from penstock.logical.values.placed import not_yet
from penstock.logical.values.scalars import resolve_scalar


@dataclass
class Grouping:
    """Keys in the order written, each once; filled by `resolve_grouping` and read-only afterwards."""

    attributes: list[Attribute] = field(default_factory=list)
    names: dict[Attribute, str] = field(default_factory=dict)  # GROUP BY ... AS name
    named: dict[str, Expression] = field(default_factory=dict)  # the same by case-folded name
    bucket: Duration | None = None
    bucket_name: str = ""

    def add(self, attribute: Attribute) -> None:
        if attribute not in self.attributes:
            self.attributes.append(attribute)


def resolve_grouping(select: Select, columns: StreamColumns) -> Grouping:
    """The keys of GROUP BY, or of SELECT DISTINCT, which groups by its select list."""
    grouping = Grouping()
    for item in select.group:
        target = _target(item, select, columns)
        expression = unwrap(target.expression)
        minutes = bucket_minutes(expression, columns)
        if minutes is not None:
            _add_bucket(grouping, minutes, item, columns.text)
            continue
        attribute = _attribute(expression, item, columns)
        grouping.add(attribute)
        if item.alias:
            _add_name(grouping, item.alias, attribute, columns.text)
            grouping.names.setdefault(attribute, item.alias.text)
    return grouping


def group_scope(grouping: Grouping, columns: StreamColumns) -> GroupScope:
    """What the select list sees."""

    def bucket(node: exp.Expr) -> Bucket | None:
        minutes = bucket_minutes(node, columns)
        if minutes is None:
            return None
        if grouping.bucket is None or minutes.microseconds != grouping.bucket.microseconds:
            written = columns.text.at(minutes.span)
            raise columns.text.error(minutes.span, f"{written} is not grouped", f"add {written} to GROUP BY")
        return Bucket()

    grouped = bool(grouping.attributes) or grouping.bucket is not None
    return GroupScope(columns, frozenset(grouping.attributes), grouping.named, bucket, grouped)


def bucket_minutes(node: exp.Expr, columns: StreamColumns) -> Duration | None:
    """`time/5` on the stream's time column; None for anything but a division of a TIMESTAMP."""
    if not isinstance(node, exp.Div) or not isinstance(column_node := unwrap(node.this), exp.Column):
        return None
    column = columns.find(column_node)
    if column is None or column.type.kind is not Kind.TIMESTAMP:
        return None
    text = columns.text
    if column.name not in columns.times:
        fact = f"only the time column '{columns.stream.time}' can be cut into buckets of minutes, not '{column.name}'"
        raise text.error(span_of(column_node), fact)
    count = unwrap(node.expression)
    sign = -1 if isinstance(count, exp.Neg) else 1
    count = unwrap(count.this) if isinstance(count, exp.Neg) else count
    minutes = constants.whole(count.name) if isinstance(count, exp.Literal) and not count.is_string else None
    if minutes is None:
        fact = "a time bucket must be a whole number of minutes"
        raise text.error(span_of(node.expression), fact, f"write it like {column.name}/5")
    return Duration(sign * minutes * MINUTE, span_of(node))


def _target(item: Item, select: Select, columns: StreamColumns) -> Item:
    """The entry itself, or the select item that it names by number or alias."""
    node = unwrap(item.expression)
    if isinstance(node, exp.Literal) and not node.is_string:
        position = constants.whole(node.name) or 0
        if not 1 <= position <= len(select.items):
            fact = f"GROUP BY {node.name} names no column of the select list"
            raise columns.text.error(span_of(node), fact, f"the select list has {len(select.items)} of them")
        return select.items[position - 1]
    if isinstance(node, exp.Column) and node.args.get("table") is None and columns.find(node) is None:
        word = word_of(node)
        aliased = [i for i in select.items if i.alias and word.same(i.alias.text)]
        if aliased:
            return aliased[0]
    return item


def _attribute(node: exp.Expr, item: Item, columns: StreamColumns) -> Attribute:
    if uses_aggregates([node]):  # said at the entry, which may name a select item
        raise columns.text.error(item.span, "GROUP BY cannot use an aggregate", "filter groups with HAVING")
    expression = resolve_scalar(node, TupleScope(columns, clause="GROUP BY"))
    if not columns_of(expression):
        raise columns.text.error(item.span, "GROUP BY a constant makes one group of all", "leave it out")
    attribute = attribute_of(expression)
    check_key(attribute, node, columns.text)
    return attribute


def check_key(attribute: Attribute, node: exp.Expr, text: AppText) -> None:
    """Addresses are only grouped by where they stand in a column."""
    if isinstance(attribute, Computed) and attribute.type.kind in (Kind.INET, Kind.PREFIX):
        raise not_yet(text, node, "grouping by computed addresses")


def _add_bucket(grouping: Grouping, minutes: Duration, item: Item, text: AppText) -> None:
    if grouping.bucket is not None and grouping.bucket.microseconds != minutes.microseconds:
        raise text.error(item.span, "a second time bucket")
    # The words to point at are those in GROUP BY, also where they name a select item.
    grouping.bucket = Duration(minutes.microseconds, item.span)
    if item.alias:
        _add_name(grouping, item.alias, Bucket(), text)
        grouping.bucket_name = grouping.bucket_name or item.alias.text


def _add_name(grouping: Grouping, alias: Word, expression: Expression, text: AppText) -> None:
    folded = alias.text.casefold()
    if grouping.named.setdefault(folded, expression) != expression:
        raise text.error(alias.span, f"GROUP BY names '{alias.text}' twice")
