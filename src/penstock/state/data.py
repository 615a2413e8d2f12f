"""Frozen dataclasses as JSON and back, driven by their type hints: what a checkpoint holds, and what tasks report.

    dataclass, NamedTuple    {field: …}; a field may be stored under another name (`stored`)
    A | B                    {"is": tag, field: …}; the tags stand in `state.tags`
    tuple, list, frozenset   […]; of a set, sorted
    Mapping                  {key: …}; with keys that are no text [[key, …], …]
    Enum                     its value
    float                    a number; infinite and NaN: {"is": "float", "bits": its 64 bits in hexadecimal}

Nothing in it says where a class lives or what it is called, so moving or renaming one breaks no checkpoint. A field
that is missing takes its default, and a `sparse` one is left out while it has it; one that nobody knows is refused.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from enum import Enum
from functools import cached_property
from math import isfinite
from operator import index
from types import NoneType, UnionType
from typing import Any, ClassVar, TypeVar, Union, get_args, get_origin, get_type_hints

from penstock.errors import StateError
from penstock.state.tags import TAGS

TAG = "is"  # a word of Python's, so no field's name
FLOAT = "float"
STORED, SPARSE = "stored", "sparse"
ADVICE = "use the version of penstock that wrote it, or another checkpoint"
T = TypeVar("T")


def stored(name: str, **options: Any) -> Any:
    """A field that files know by another name."""
    return field(metadata={STORED: name}, **options)


def sparse(default: Any) -> Any:
    """A field that few values have: files say nothing of it while it has its default."""
    return field(default=default, metadata={SPARSE: True})


def to_data(value: object) -> dict[str, Any]:
    """A dataclass as what JSON can say."""
    data: dict[str, Any] = codec(type(value)).write(value)
    return data


def from_data(kind: type[T], data: object, what: str) -> T:
    """The value that `to_data` was given; `what` names it where it does not fit."""
    try:
        value: T = codec(kind).read(data)
    except Unfit as error:
        raise StateError(f"{what} does not fit this version of penstock: {error}", ADVICE) from None
    return value


class Unfit(Exception):
    """Data that no value of a type was written as: where, and what is wrong there."""

    def __init__(self, fact: str, place: str = "") -> None:
        super().__init__(fact)
        self.fact, self.place = fact, place

    def below(self, place: str) -> Unfit:
        dot = "." if self.place and not self.place.startswith("[") else ""
        return Unfit(self.fact, f"{place}{dot}{self.place}")

    def __str__(self) -> str:
        return f"{self.place} {self.fact}" if self.place else f"it {self.fact}"


@dataclass(frozen=True)
class Codec:
    """To data, and from data; the latter raises `Unfit`."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


_codecs: dict[Any, Codec] = {}


def codec(hint: Any) -> Codec:
    """How values of a type are written; a `TypeError` of a type that cannot be."""
    found = _codecs.get(hint)
    if found is None:
        found = _codecs[hint] = _made(hint)
    return found


def reachable(kind: Any) -> set[type]:
    """All dataclasses and named tuples that values of a type may hold; a `TypeError` if one cannot be written."""
    found: set[type] = set()
    waiting = [kind]
    while waiting:
        hint = waiting.pop()
        if get_args(hint):
            codec(hint)
            waiting += [part for part in get_args(hint) if part is not Ellipsis]
        elif hint is not NoneType and hint not in found and isinstance(codec(hint), RecordCodec):
            found.add(hint)
            waiting += [kind for kind in get_type_hints(hint).values() if get_origin(kind) is not ClassVar]
    return found


def _made(hint: Any) -> Codec:
    origin, parts = get_origin(hint), get_args(hint)
    if hint in SCALARS:
        return SCALARS[hint]
    if origin in (Union, UnionType):
        return _union(parts)
    if origin is tuple and parts[-1:] != (Ellipsis,):
        return _fixed(parts)
    if origin in (tuple, list, frozenset):
        return _sequence(parts[0], origin)
    if origin in (Mapping, dict):
        return _mapping(*parts) if parts[0] is str else _pairs(*parts)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _enum(hint)
    if isinstance(hint, type) and (is_dataclass(hint) or (issubclass(hint, tuple) and hasattr(hint, "_fields"))):
        return RecordCodec(hint)
    raise TypeError(f"{hint} cannot be written as data")


# -- numbers and texts


def _exactly(kind: type, what: str) -> Callable[[Any], Any]:
    def read(data: Any) -> Any:
        if type(data) is not kind:
            raise Unfit(f"is not {what}")
        return data

    return read


def _write_float(value: Any) -> Any:
    if isinstance(value, float):
        finite = isfinite(value)
        return float(value) if finite else {TAG: FLOAT, "bits": struct.pack(">d", value).hex()}
    try:
        return index(value)  # a whole number stays one
    except TypeError:
        return _write_float(float(value))


def _read_float(data: Any) -> Any:
    if type(data) in (float, int):
        return data
    try:
        if data[TAG] == FLOAT and len(data) == 2:
            return struct.unpack(">d", bytes.fromhex(data["bits"]))[0]
    except (KeyError, TypeError, ValueError, struct.error):
        pass
    raise Unfit("is not a number")


SCALARS: dict[Any, Codec] = {
    bool: Codec(bool, _exactly(bool, "true or false")),
    int: Codec(index, _exactly(int, "a whole number")),
    float: Codec(_write_float, _read_float),
    str: Codec(str, _exactly(str, "text")),
}


def _enum(kind: type[Enum]) -> Codec:
    def read(data: Any) -> Enum:
        try:
            return kind(data)
        except ValueError:
            raise Unfit(f"is {data!r}, which is not known") from None

    return Codec(lambda value: value.value, read)


# -- many of a type


def _sequence(part: Any, make: Callable[[Iterable[Any]], Any]) -> Codec:
    one = codec(part)

    def write(values: Iterable[Any]) -> list[Any]:
        written = list(map(one.write, values))
        return sorted(written, key=repr) if make is frozenset else written

    def read(data: Any) -> Any:
        if type(data) is not list:
            raise Unfit("is not a list")
        if part is int and set(map(type, data)) <= {int}:  # there may be many
            return make(data)
        return make(_each(one, data))

    return Codec(write, read)


def _each(one: Codec, data: list[Any]) -> list[Any]:
    found = []
    for number, part in enumerate(data):
        try:
            found.append(one.read(part))
        except Unfit as error:
            raise error.below(f"[{number}]") from None
    return found


def _fixed(parts: tuple[Any, ...]) -> Codec:
    each = [codec(part) for part in parts]

    def write(values: tuple[Any, ...]) -> list[Any]:
        return [one.write(value) for one, value in zip(each, values, strict=True)]

    def read(data: Any) -> tuple[Any, ...]:
        if type(data) is not list or len(data) != len(each):
            raise Unfit(f"is not a list of {len(each)}")
        return tuple(one.read(part) for one, part in zip(each, data, strict=True))

    return Codec(write, read)


def _mapping(_: Any, part: Any) -> Codec:
    one = codec(part)

    def read(data: Any) -> dict[str, Any]:
        if type(data) is not dict:
            raise Unfit("is not an object")
        if part is int and set(map(type, data.values())) <= {int}:  # there may be many
            return dict(data)
        return dict(zip(data, _each(one, list(data.values())), strict=True))

    return Codec(lambda values: {str(key): one.write(value) for key, value in values.items()}, read)


def _pairs(key: Any, part: Any) -> Codec:
    many = _sequence(tuple[key, part], dict)
    return Codec(lambda values: many.write(values.items()), many.read)


# -- one of several


def _union(hints: tuple[Any, ...]) -> Codec:
    some = [hint for hint in hints if hint is not NoneType]
    inner = codec(some[0]) if len(some) == 1 else _tagged(some)
    if len(some) == len(hints):
        return inner
    return Codec(
        lambda value: None if value is None else inner.write(value),
        lambda data: None if data is None else inner.read(data),
    )


def _tagged(hints: list[Any]) -> Codec:
    names = {kind: tag for tag, kind in TAGS.items()}
    scalars = {hint: SCALARS[hint] for hint in hints if hint in SCALARS}
    for hint in hints:
        if hint not in scalars and hint not in names:
            raise TypeError(f"{hint} stands in a union and has no tag in state.tags")
    records = {names[hint]: codec(hint) for hint in hints if hint not in scalars}

    def write(value: Any) -> Any:
        kind = type(value)
        if kind in scalars:
            return scalars[kind].write(value)
        if names.get(kind) not in records:
            raise TypeError(f"{kind} is none of {hints}")
        return {TAG: names[kind], **records[names[kind]].write(value)}

    def read(data: Any) -> Any:
        if type(data) in scalars:
            return data
        tag = data.get(TAG) if type(data) is dict else None
        if tag == FLOAT and float in scalars:
            return _read_float(data)
        if tag not in records:
            raise Unfit(f"is {tag!r}, which is not known" if tag else "has no kind")
        return records[tag].read({name: part for name, part in data.items() if name != TAG})

    return Codec(write, read)


# -- fields


@dataclass(frozen=True)
class FieldCodec:
    """A field: its name in Python and in files, whether it must be there, and the values that are left out."""

    name: str
    stored: str
    codec: Codec
    needed: bool
    silent: tuple[Any, ...] = ()


class RecordCodec(Codec):
    """A dataclass or named tuple. Its fields are looked at when they are first needed: types may hold themselves."""

    def __init__(self, kind: type) -> None:
        super().__init__(self._write, self._read)
        object.__setattr__(self, "kind", kind)

    kind: type

    @cached_property
    def parts(self) -> tuple[FieldCodec, ...]:
        hints = get_type_hints(self.kind)
        if not is_dataclass(self.kind):
            defaults = self.kind._field_defaults  # type: ignore[attr-defined]
            return tuple(FieldCodec(name, name, codec(hint), name not in defaults) for name, hint in hints.items())
        return tuple(
            FieldCodec(
                one.name,
                one.metadata.get(STORED, one.name),
                codec(hints[one.name]),
                _needed(one),
                (one.default,) if SPARSE in one.metadata else (),
            )
            for one in fields(self.kind)
            if one.init
        )

    # A batch reads and writes hundreds of records: what their loops look up stands in tuples.

    @cached_property
    def _writers(self) -> tuple[tuple[str, str, Callable[[Any], Any], tuple[Any, ...]], ...]:
        return tuple((part.name, part.stored, part.codec.write, part.silent) for part in self.parts)

    @cached_property
    def _readers(self) -> tuple[tuple[str, str, Callable[[Any], Any], bool], ...]:
        return tuple((part.name, part.stored, part.codec.read, part.needed) for part in self.parts)

    def _write(self, value: Any) -> dict[str, Any]:
        if type(value) is not self.kind:
            raise TypeError(f"{type(value)} is not {self.kind}")
        data = {}
        for name, stored, write, silent in self._writers:
            given = getattr(value, name)
            if not silent or given not in silent:
                data[stored] = write(given)
        return data

    def _read(self, data: Any) -> Any:
        if type(data) is not dict:
            raise Unfit("is not an object")
        given = {}
        for name, stored, read, needed in self._readers:
            if stored in data:
                try:
                    given[name] = read(data[stored])
                except Unfit as error:
                    raise error.below(stored) from None
            elif needed:
                raise Unfit(f"has no '{stored}'")
        if len(given) < len(data):
            raise Unfit(f"has a '{next(iter(data.keys() - {part.stored for part in self.parts}))}' that is not known")
        return self.kind(**given)


def _needed(one: Field[Any]) -> bool:
    return one.default is MISSING and one.default_factory is MISSING
