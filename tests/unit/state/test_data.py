"""Dataclasses as data: what comes back is equal, and what does not fit is refused with a sentence."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any, NamedTuple

import numpy as np
import pytest

from penstock.errors import StateError
from penstock.logical.expressions import Bucket, Column, Expression, Literal, Logic, Not
from penstock.logical.query import QuerySet
from penstock.logical.types import BIGINT, BOOLEAN, DOUBLE
from penstock.relations.component import Component, Tag, value_component
from penstock.state.data import codec, from_data, reachable, stored, to_data
from penstock.state.identity import Identity
from penstock.state.manifest import Manifest
from penstock.state.tags import TAGS
from penstock.state.versions import Version


class Colour(Enum):
    RED = "red"


class Size(IntEnum):
    SMALL = 1


class Spot(NamedTuple):
    x: int
    y: float = 0.5


@dataclass(frozen=True)
class Inner:
    number: int | float | bool | str | None = None
    spots: tuple[Spot, ...] = ()


@dataclass(frozen=True)
class Whole:
    name: str
    colour: Colour
    size: Size
    inner: Inner
    perhaps: Inner | None
    bag: frozenset[tuple[str, int]]
    table: Mapping[str, Inner]
    keyed: Mapping[Component, int]
    pair: tuple[int | None, str]
    real: float
    many: tuple[int, ...] = ()
    expression: Expression | None = None
    renamed: int = stored("other", default=3)


def whole(**changes: Any) -> Whole:
    given: dict[str, Any] = {
        "name": "é", "colour": Colour.RED, "size": Size.SMALL, "inner": Inner(1, (Spot(1), Spot(-2, 1e300))),
        "perhaps": None, "bag": frozenset({("b", 2), ("a", 1)}), "table": {"z": Inner(), "": Inner("x")},
        "keyed": {value_component("src"): 7, Component(Tag.INET6, "src", 24): -1}, "pair": (None, "p"), "real": 0.1,
    }  # fmt: skip
    return Whole(**given | changes)


def through(value: object) -> Any:
    text = json.dumps(to_data(value), allow_nan=False)
    return from_data(type(value), json.loads(text), "value")


def test_what_comes_back_is_equal() -> None:
    for one in (whole(), whole(perhaps=Inner(2)), whole(many=tuple(range(1000))), whole(renamed=9)):
        assert through(one) == one
    assert to_data(whole())["other"] == 3
    assert to_data(whole())["bag"] == [["a", 1], ["b", 2]]


@pytest.mark.parametrize(
    "value",
    [None, True, False, 0, 1, -1, 1 << 63, 1 << 200, -(1 << 99), 0.0, -0.0, 1.0, 1e22, 5e-324, "", "1", "nan", "is"],
)
def test_constants_keep_value_and_type(value: object) -> None:
    found = through(Inner(value)).number  # type: ignore[arg-type]
    assert found == value
    assert type(found) is type(value)
    assert math.copysign(1, found) == math.copysign(1, value) if isinstance(value, float) else True


@pytest.mark.parametrize("bits", [0x7FF0 << 48, 0xFFF0 << 48, 0x7FF8 << 48, 0xFFF8 << 48, (0x7FF8 << 48) + 5])
def test_numbers_that_are_none_keep_their_bits(bits: int) -> None:
    value = struct.unpack(">d", bits.to_bytes(8, "big"))[0]
    for found in (through(Inner(value)).number, through(whole(real=value)).real):
        assert struct.pack(">d", found) == bits.to_bytes(8, "big")


def test_numbers_of_arrays_become_plain() -> None:
    found = through(whole(real=np.float64(0.1), many=tuple(np.arange(3))))
    assert found == whole(many=(0, 1, 2))
    assert type(found.real) is float
    assert {type(number) for number in found.many} == {int}
    assert through(whole(real=np.int64(2))).real == 2


def test_expressions_hold_expressions() -> None:
    nested = Logic("AND", (Not(Column("a", BOOLEAN)), Literal(math.inf, DOUBLE), Bucket()))
    assert through(whole(expression=nested)).expression == nested


def changed(**changes: Any) -> dict[str, Any]:
    return to_data(whole()) | changes


@pytest.mark.parametrize(
    ("data", "fact"),
    [
        ([], "it is not an object"),
        ({}, "it has no 'name'"),
        (changed(more=1), "it has a 'more' that is not known"),
        (changed(name=1), "name is not text"),
        (changed(colour="blue"), "colour is 'blue', which is not known"),
        (changed(inner={"number": [1]}), "inner.number has no kind"),
        (changed(inner={"spots": [{"x": 1}, {"x": True}]}), r"inner.spots\[1\].x is not a whole number"),
        (changed(bag={}), "bag is not a list"),
        (changed(bag=[["a"]]), r"bag\[0\] is not a list of 2"),
        (changed(table=[]), "table is not an object"),
        (changed(real="1"), "real is not a number"),
        (changed(real={"is": "float", "bits": "1"}), "real is not a number"),
        (changed(many=[1, "2"]), r"many\[1\] is not a whole number"),
        (changed(expression={"is": "penstock.logical.expressions.Column"}), "expression is 'penstock.* not known"),
        (changed(expression={"is": "column", "name": "a"}), "expression has no 'type'"),
    ],
)
def test_what_does_not_fit_is_refused(data: object, fact: str) -> None:
    with pytest.raises(StateError, match=f"thing 7 does not fit this version of penstock: {fact}"):
        from_data(Whole, data, "thing 7")


@dataclass(frozen=True)
class Untagged:
    either: Inner | Whole


@dataclass(frozen=True)
class Loose:
    anything: Any


def test_types_that_cannot_be_written_are_told() -> None:
    with pytest.raises(TypeError, match=r"Inner'> stands in a union and has no tag"):
        reachable(Untagged)
    with pytest.raises(TypeError, match=r"Any cannot be written"):
        reachable(Loose)
    with pytest.raises(TypeError):
        to_data(whole(inner=Spot(1)))


def test_everything_a_checkpoint_holds_can_be_written() -> None:
    """Whoever adds a class to a union adds its tag."""
    found = reachable(Version) | reachable(Manifest) | reachable(Identity)
    assert {QuerySet, Column} <= found
    for kind in found:
        codec(kind).parts  # type: ignore[attr-defined]  # noqa: B018


def test_tags_are_for_ever() -> None:
    """A tag in files of today means the same class tomorrow, wherever that lives and whatever it is called."""
    assert len(set(TAGS.values())) == len(TAGS)
    assert from_data(Inner, {"number": 5}, "x") == Inner(5)
    read = codec(Expression).read
    assert read({"is": "column", "name": "a", "type": {"kind": "INTEGER", "bits": 64}}) == Column("a", BIGINT)
