"""Types of columns and results; the vocabulary shared by language, sources, kernels and sinks.

Neighbours: `lang` maps SQL type names to these, `sources.base` maps Arrow types, `runtime.merge.results` maps back.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

# What to do about a column whose type is not read.
NOT_READ = "leave it out, or write it to the file as a number, text, BOOLEAN, date or timestamp"


class Kind(Enum):
    BOOLEAN = "BOOLEAN"
    INTEGER = "INTEGER"
    DOUBLE = "DOUBLE"
    TIMESTAMP = "TIMESTAMP"  # microseconds since 1970-01-01T00:00Z
    STRING = "STRING"
    INET = "INET"  # one address, IPv4 or IPv6
    PREFIX = "PREFIX"  # an INET cut to its first n bits, prints as 10.0.0.0/24

    __hash__ = object.__hash__  # that of Enum is a function in Python: sets of columns asked it most of all


@dataclass(frozen=True)
class Type:
    kind: Kind
    bits: int = 64  # of integers: 8, 16, 32, 64 (signed)

    def __str__(self) -> str:
        if self.kind is Kind.INTEGER:
            return {8: "TINYINT", 16: "SMALLINT", 32: "INT", 64: "BIGINT"}[self.bits]
        return str(self.kind.value)

    @property
    def numeric(self) -> bool:
        return self.kind in (Kind.INTEGER, Kind.DOUBLE)


BOOLEAN = Type(Kind.BOOLEAN)
TINYINT, SMALLINT, INT, BIGINT = (Type(Kind.INTEGER, bits) for bits in (8, 16, 32, 64))
DOUBLE = Type(Kind.DOUBLE)
TIMESTAMP = Type(Kind.TIMESTAMP)
STRING = Type(Kind.STRING)
INET = Type(Kind.INET)
PREFIX = Type(Kind.PREFIX)

# How they are written in SQL.
TYPE_NAMES: dict[str, Type] = {
    "TINYINT": TINYINT,
    "SMALLINT": SMALLINT,
    "INT": INT,
    "INTEGER": INT,
    "BIGINT": BIGINT,
    "FLOAT": DOUBLE,
    "REAL": DOUBLE,
    "DOUBLE": DOUBLE,
    "BOOLEAN": BOOLEAN,
    "BOOL": BOOLEAN,
    "TIMESTAMP": TIMESTAMP,
    "STRING": STRING,
    "VARCHAR": STRING,
    "TEXT": STRING,
    "CHAR": STRING,
    "INET": INET,
}
