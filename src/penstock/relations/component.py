"""Components: the numbers that keys of groups are made of.

A grouping attribute is one or more components: the value itself, whether it is NULL, and for an address the code of an
IPv6 one. Beside them stand the number of the pane and, inside the tables of a task, *sieves*: whether a record is not
for some of the relations that a table feeds.

Components are named by this type everywhere in memory. Files name them by `text`, which `component_of` reads back.
"""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from penstock.logical.types import Kind
from penstock.logical.window import Panes

WHOLE = -1  # the length of an address that is not cut to a prefix


class Tag(StrEnum):
    """What a component says."""

    PANE = "pane"
    VALUE = "value"
    NULL = "null"
    INET6 = "inet6"
    SIEVE = "sieve"

    __hash__ = str.__hash__  # that of Enum is a function in Python


class Component(NamedTuple):
    """`of` is the column; of a pane its axis, slide and cut, of a sieve the relation. `length`: of an INET6 prefix."""

    tag: Tag
    of: str
    length: int = WHOLE

    @property
    @lru_cache(maxsize=4096)  # noqa: B019 - components are values, and there are few
    def text(self) -> str:
        """As files and people have it: `value:src`, `inet6/24:src`."""
        return f"{self.tag}:{self.of}" if self.length == WHOLE else f"{self.tag}/{self.length}:{self.of}"

    @property
    def code_base(self) -> int:
        """The value that stands for code 0 of a dictionary: address codes leave 0 for "not IPv6"."""
        return 1 if self.tag is Tag.INET6 else 0

    @property
    @lru_cache(maxsize=4096)  # noqa: B019 - as above
    def null(self) -> Component:
        """The flag that says whether this component's column is NULL."""
        return null_component(self.of)


@lru_cache(maxsize=4096)
def component_of(text: str) -> Component:
    """The component of this text."""
    head, _, of = text.partition(":")
    tag, _, length = head.partition("/")
    return Component(Tag(tag), of, int(length) if length else WHOLE)


@lru_cache(maxsize=4096)
def value_component(column: str) -> Component:
    """The value itself: integer, order bits of a float, IPv4 number, or code of a string."""
    return Component(Tag.VALUE, column)


@lru_cache(maxsize=4096)
def null_component(column: str) -> Component:
    """1 where the column is NULL."""
    return Component(Tag.NULL, column)


@lru_cache(maxsize=4096)
def inet6_component(column: str, length: int = WHOLE) -> Component:
    """Code + 1 of an IPv6 address (or of its prefix); 0 where the address is IPv4 or NULL."""
    return Component(Tag.INET6, column, length)


def pane_component(panes: Panes) -> Component:
    """The number of the pane."""
    return Component(Tag.PANE, f"{panes.axis}:{panes.slide}:{panes.cut}")


@lru_cache(maxsize=4096)
def sieve_component(relation: str) -> Component:
    """1 where a record is not for this relation (and those that choose alike), though it is for others of a table."""
    return Component(Tag.SIEVE, relation)


def dictionary_component(column: str, kind: Kind) -> Component:
    """Where the bytes are that codes of a column's values refer to."""
    return value_component(column) if kind is Kind.STRING else inet6_component(column)
