"""Arrow columns of a source into components and values: the first half of PACK.

Every column becomes int64 numbers with a mask of what is there; strings and IPv6 addresses become codes of
the task's dictionaries; values that do not fit their declared type are *bad* and make the record malformed for
the queries that use the column. Dictionary-encoded columns are converted once per dictionary, not per tuple.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels import inet
from penstock.kernels.dictionary import Dictionary
from penstock.kernels.tables.fold import order_bits
from penstock.kernels.tables.pack import all_valid
from penstock.logical.expressions import Computed
from penstock.logical.query import Field
from penstock.logical.types import Kind
from penstock.relations.component import Component, inet6_component, value_component
from penstock.runtime.expressions.evaluate import Addresses, Operand
from penstock.sources.base import ADDRESS

Array = np.ndarray
MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}


@dataclass
class Ingested:
    """A column of a chunk. `valid` (uint8) is empty where all are; `bad` None where none is."""

    numbers: Array
    valid: Array
    floats: Array | None = None
    bad: Array | None = None
    inet6: Array | None = None  # code + 1 of IPv6 addresses; None where there is none
    strings: pa.Array | None = None


class Ingest:
    """Converts the columns of one task; owns the task's dictionaries, which `reset` empties."""

    def __init__(
        self, fields: tuple[Field, ...], prefixes: frozenset[tuple[str, int]], computed: tuple[Computed, ...] = ()
    ) -> None:
        made = tuple(Field(column.name, column.type) for column in computed)
        self._fields = {field.name: field for field in (*fields, *made)}
        self._prefixes = sorted(prefixes)
        self.reset()

    def reset(self) -> None:
        self.dictionaries: dict[Component, Dictionary] = {}
        self._maps: dict[Component, tuple[pa.Array, tuple[Array, ...]]] = {}
        self._prefix_codes: dict[Component, Array] = {}
        for name, field in self._fields.items():
            if field.type.kind is Kind.STRING:
                self.dictionaries[value_component(name)] = Dictionary()
            elif field.type.kind is Kind.INET:
                self.dictionaries[inet6_component(name)] = Dictionary()
        for name, length in self._prefixes:
            self.dictionaries[inet6_component(name, length)] = Dictionary()

    @property
    def nbytes(self) -> int:
        return sum(d.nbytes for d in self.dictionaries.values())

    def column(self, name: str, array: pa.Array, flags: pa.Array | None = None) -> Ingested:
        """Convert a column; `flags` marks values that the source found bad."""
        column = self._column(name, array)
        if flags is not None:
            bad = flags.to_numpy(zero_copy_only=False)
            column.bad = bad if column.bad is None else column.bad | bad
        return column

    def computed(self, column: Computed, operand: Operand) -> Ingested:
        """A column that the query makes, from its values."""
        values = operand.values
        valid = all_valid() if operand.valid is None or operand.valid.all() else operand.valid.astype(np.uint8)
        match column.type.kind:
            case Kind.STRING:
                array = values if not len(valid) else pc.if_else(pa.array(operand.valid), _plain(values), None)
                return Ingested(self._codes(column.name, array, _present(array)), _present(array))
            case Kind.DOUBLE:
                floats = np.ascontiguousarray(values, np.float64)
                numbers = np.empty(len(floats), np.int64)
                order_bits(floats, numbers)
                return Ingested(numbers, valid, floats=floats)
        return Ingested(np.ascontiguousarray(values).astype(np.int64), valid)

    def _column(self, name: str, array: pa.Array) -> Ingested:
        field = self._fields[name]
        valid = _present(array)
        match field.type.kind:
            case Kind.STRING:
                codes = self._codes(name, array, valid)
                return Ingested(codes, valid, strings=array)
            case Kind.INET:
                return self._addresses(name, array, valid)
            case Kind.DOUBLE:
                floats = _view(_plain(array).cast(pa.float64(), safe=False), np.float64)
                numbers = np.empty(len(floats), np.int64)
                order_bits(floats, numbers)
                return Ingested(numbers, valid, floats=floats)
            case Kind.TIMESTAMP:
                return _timestamps(_plain(array), valid)
            case Kind.BOOLEAN:
                return Ingested(_view(array.cast(pa.int8()), np.int8).astype(np.int64), valid)
        return _integers(_plain(array), valid, field.type.bits)

    def _codes(self, name: str, array: pa.Array, valid: Array) -> Array:
        """Codes of strings; NULLs have code 0."""
        indices, values = _encoded(array)
        component = value_component(name)
        (codes,) = self._mapped(component, values, lambda strings: (self._intern(component, *_bytes(strings)),))
        return _take(codes, indices, valid)

    def _addresses(self, name: str, array: pa.Array, valid: Array) -> Ingested:
        if pa.types.is_integer(array.type):
            result = _integers(array, valid, 64)
            outside = (result.numbers < 0) | (result.numbers >> 32 != 0)
            result.bad = _bad(outside if result.bad is None else outside | result.bad, valid)
            result.numbers = np.where(outside, 0, result.numbers)
            return result
        if array.type == ADDRESS:
            return self._numeric_addresses(name, array, valid)
        indices, values = _encoded(array)
        component = inet6_component(name)
        numbers, codes, wrong = self._mapped(component, values, lambda texts: self._parse(component, texts))
        bad = _take(wrong, indices, valid).astype(bool)
        inet6 = _take(codes, indices, valid) if codes.any() else None
        return Ingested(_take(numbers, indices, valid), valid, bad=_bad(bad, valid), inet6=inet6)

    def _numeric_addresses(self, name: str, array: pa.Array, valid: Array) -> Ingested:
        """IPv4 numbers as they are; the bytes of IPv6 addresses become codes."""
        numbers = _view(array.field(0), np.uint32).astype(np.int64)
        if array.field(1).null_count == len(array):
            return Ingested(numbers, valid)
        component, long = inet6_component(name), array.field(1)
        six = long.is_valid().to_numpy(zero_copy_only=False)
        whole = np.frombuffer(long.buffers()[1], np.uint8).reshape(-1, 16)[long.offset : long.offset + len(long)]
        data = whole[six].reshape(-1)
        codes = np.zeros(len(numbers), np.int64)
        codes[six] = self._intern(component, np.arange(0, len(data) + 1, 16), data) + component.code_base
        return Ingested(numbers, valid, inet6=codes)

    def _parse(self, component: Component, texts: pa.Array) -> tuple[Array, ...]:
        """(IPv4 number, IPv6 code + 1, bad) of each text."""
        version, high, low = inet.parse(*_bytes(texts))
        six = version == 6
        codes = np.zeros(len(version), np.int64)
        if six.any():
            codes[six] = self._intern(component, *inet.network_order(high[six], low[six])) + component.code_base
        return np.where(version == 4, low, 0).astype(np.int64), codes, (version == 0).astype(np.int64)

    def prefix(self, name: str, length: int, inet6: Array) -> Array:
        """Codes + 1 of the IPv6 prefixes of addresses given by their codes + 1."""
        whole, component = self.dictionaries[inet6_component(name)], inet6_component(name, length)
        known = self._prefix_codes.get(component, np.zeros(1, np.int64))
        if len(known) <= whole.count:
            new = whole.data[16 * (len(known) - 1) :]
            cut = inet.cut(*inet.from_network_order(new), length)
            codes = self._intern(component, *inet.network_order(*cut)) + component.code_base
            known = self._prefix_codes[component] = np.concatenate([known, codes])
        codes_of: Array = known[inet6]
        return codes_of

    def operand(self, name: str, column: Ingested) -> Operand:
        """The column as an operand of WHERE."""
        valid = column.valid.astype(bool) if len(column.valid) else None
        kind = self._fields[name].type.kind
        if kind is Kind.STRING:
            return Operand(column.strings, valid)
        if kind is Kind.INET:
            return Operand(self._numbers(name, column), valid)
        if kind is Kind.BOOLEAN:
            return Operand(column.numbers != 0, valid)
        return Operand(column.numbers if column.floats is None else column.floats, valid)

    def _numbers(self, name: str, column: Ingested) -> Addresses:
        low = column.numbers.astype(np.uint64)
        version, high = np.full(len(low), 4, np.uint8), np.zeros(len(low), np.uint64)
        if column.inet6 is not None:
            six = column.inet6 > 0
            highs, lows = inet.from_network_order(self.dictionaries[inet6_component(name)].data)
            version[six], codes = 6, column.inet6[six] - inet6_component(name).code_base
            high[six], low[six] = highs[codes], lows[codes]
        return Addresses(version, high, low)

    def _intern(self, component: Component, start: Array, data: Array) -> Array:
        return self.dictionaries[component].intern(start, data)

    def _mapped(self, component: Component, values: pa.Array, convert) -> tuple[Array, ...]:  # type: ignore[no-untyped-def]
        """Convert a dictionary's values once: neighbouring chunks of a file mostly share it."""
        known = self._maps.get(component)
        if known is None or not _same(known[0], values):
            known = self._maps[component] = (values, convert(values))
        return known[1]


def _same(one: pa.Array, other: pa.Array) -> bool:
    """The very same memory (a converted dictionary is kept alive, so its address is its own)."""
    return (
        len(one) == len(other)
        and one.offset == other.offset
        and [b and b.address for b in one.buffers()] == [b and b.address for b in other.buffers()]
    )


def _present(array: pa.Array) -> Array:
    if array.null_count == 0:
        return all_valid()
    present: Array = pc.is_valid(array).to_numpy(zero_copy_only=False).view(np.uint8)
    return present


def _plain(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _encoded(array: pa.Array) -> tuple[Array, pa.Array]:
    """(indices, values) of a string column, encoding it if the source did not."""
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    indices = array.indices if array.indices.type == pa.int32() else array.indices.cast(pa.int32())
    return _view(indices, np.int32), array.dictionary


def _take(by_index: Array, indices: Array, valid: Array) -> Array:
    if len(valid):
        indices = np.where(valid.astype(bool), indices, 0)
    return by_index[indices] if len(by_index) else np.zeros(len(indices), np.int64)


def _bytes(strings: pa.Array) -> tuple[Array, Array]:
    """(offsets, bytes) of an Arrow string array without copying the bytes."""
    wide = pa.types.is_large_string(strings.type)
    kind = np.int64 if wide else np.int32
    _, offsets, data = strings.buffers()
    if not len(strings):
        return np.zeros(1, np.int64), np.empty(0, np.uint8)
    start = np.frombuffer(offsets, kind)[strings.offset : strings.offset + len(strings) + 1].astype(np.int64)
    return start, np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)


def _view(array: pa.Array, kind: type) -> Array:
    """The values' buffer itself; what stands under a NULL is undefined."""
    if not len(array):
        return np.empty(0, kind)
    return np.frombuffer(array.buffers()[1], kind)[array.offset : array.offset + len(array)]


def _bad(bad: Array, valid: Array) -> Array | None:
    if len(valid):
        bad = bad & valid.astype(bool)
    return bad if bad.any() else None


def _integers(array: pa.Array, valid: Array, bits: int) -> Ingested:
    if array.type == pa.uint64():
        numbers = _view(array, np.uint64).view(np.int64)
        outside = numbers < 0
    else:
        # Arrow would look at every value on the way; what stands under a NULL is undefined before and after.
        numbers = _view(array, array.type.to_pandas_dtype()).astype(np.int64, copy=False)
        outside = None
    wide = array.type.bit_width if pa.types.is_signed_integer(array.type) else array.type.bit_width + 1
    if bits < 64 and wide > bits:
        beyond = (numbers < -(1 << (bits - 1))) | (numbers >= 1 << (bits - 1))
        outside = beyond if outside is None else outside | beyond
    bad = None if outside is None else _bad(outside, valid)
    return Ingested(numbers if bad is None else np.where(bad, 0, numbers), valid, bad=bad)


def _timestamps(array: pa.Array, valid: Array) -> Ingested:
    raw = _view(array, np.int64)
    if array.type.unit == "ns":
        return Ingested(raw // 1000, valid)
    scale = MICROSECONDS[array.type.unit]
    if scale == 1:
        return Ingested(raw, valid)
    limit = ((1 << 63) - 1) // scale
    bad = _bad((raw > limit) | (raw < -limit), valid)
    return Ingested(np.where((raw > limit) | (raw < -limit), 0, raw) * scale, valid, bad=bad)
