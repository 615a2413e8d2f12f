"""FINISH: merged groups into rows of the result: HAVING, select list, window_start and window_end.

Everything is a column at a time; only what the select list and HAVING name is computed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import RunError
from penstock.kernels import inet
from penstock.kernels.fold import from_order_bits
from penstock.logical.expressions import Aggregate, Bucket, Column, Expression, Prefix
from penstock.logical.query import Query
from penstock.logical.render import render
from penstock.logical.types import Kind, Type
from penstock.runtime.evaluate import Addresses, Operand, Scope, evaluate, truth
from penstock.runtime.results import TIME, arrow_type, result_schema
from penstock.sharing.plan import IPV4_BITS, State, inet6_component, null_component, value_component
from penstock.state.groups import Groups, code_base

Array = np.ndarray


def finish(query: Query, groups: Groups) -> pa.Table:
    """The result rows of these groups; every group must be complete. Strings stay dictionary-encoded."""
    columns = Finisher(query, groups)
    arrays = [columns.arrow(output.expression) for output in query.select]
    start = groups.window * query.window.size
    arrays += [_times(start), _times(start + query.window.size)]
    table = pa.Table.from_arrays(arrays, result_schema(query).names)
    if query.having is not None:
        table = table.filter(pa.array(truth(query.having, Scope(columns.operand, len(groups)))))
    return table


class Finisher:
    """Keys and aggregates of groups as operands and as Arrow columns."""

    def __init__(self, query: Query, groups: Groups) -> None:
        self._query, self._groups = query, groups

    def operand(self, expression: Expression) -> Operand:
        match expression:
            case Bucket():
                return Operand(self._groups.window)
            case Aggregate():
                return self._aggregate(expression)
            case Prefix(column, length):
                texts = self._text(self._addresses(column.name, length), length)
                return Operand(texts, self._present(column.name))
            case Column():
                return self._key(expression)
        raise AssertionError(f"no operand for {expression}")

    def arrow(self, expression: Expression) -> pa.Array:
        """A column of the select list."""
        operand = evaluate(expression, Scope(self.operand, len(self._groups)))
        values, kind = operand.values, arrow_type(expression.type)
        if isinstance(values, Addresses):
            values = self._text(values)
        nulls = None if operand.valid is None else ~operand.valid
        if isinstance(values, pa.DictionaryArray):
            indices = pa.array(values.indices.to_numpy(), mask=nulls)
            return pa.DictionaryArray.from_arrays(indices, values.dictionary)
        if isinstance(values, pa.Array):
            return values if nulls is None else pc.if_else(pa.array(nulls), None, values)
        if kind == TIME:
            return pa.array(values.astype(np.int64), pa.int64(), mask=nulls).cast(TIME)
        return pa.array(values.astype(kind.to_pandas_dtype()), kind, mask=nulls)

    def _present(self, column: str) -> Array | None:
        nulls = self._groups.components[null_component(column)]
        return nulls == 0 if nulls.any() else None

    def _key(self, column: Column) -> Operand:
        name, valid = column.name, self._present(column.name)
        if column.type.kind is Kind.INET:
            return Operand(self._addresses(name), valid)
        return Operand(
            self._typed(column.type, value_component(name), self._groups.components[value_component(name)]), valid
        )

    def _typed(self, kind: Type, component: str, numbers: Array) -> Any:
        """Canonical numbers of a key or an extreme as values of their type."""
        if kind.kind is Kind.STRING:
            words = self._groups.dictionaries[component]
            strings = _strings(words.offsets, words.data) if words.count else pa.array([""])
            # Codes of NULLs and of extremes without a value are not looked at.
            codes = np.clip(numbers, 0, len(strings) - 1).astype(np.int32)
            return pa.DictionaryArray.from_arrays(pa.array(codes), strings)
        if kind.kind is Kind.DOUBLE:
            floats = np.empty(len(numbers), np.float64)
            from_order_bits(numbers, floats)
            return floats
        return numbers != 0 if kind.kind is Kind.BOOLEAN else numbers

    def _addresses(self, name: str, length: int | None = None) -> Addresses:
        """The addresses of a key column, cut to `length` bits."""
        component = inet6_component(name, length)
        low = self._groups.components[value_component(name)].astype(np.uint64)
        if length is not None:
            drop = np.uint64(max(0, IPV4_BITS - length))
            low = low >> drop << drop
        version, high = np.full(len(low), 4, np.uint8), np.zeros(len(low), np.uint64)
        codes = self._groups.components[component]
        six = codes > 0
        if six.any():
            highs, lows = inet.from_network_order(self._groups.dictionaries[component].data)
            at = codes[six] - code_base(component)
            version[six], high[six], low[six] = 6, highs[at], lows[at]
        return Addresses(version, high, low)

    def _text(self, addresses: Addresses, length: int = -1) -> pa.Array:
        return _strings(*inet.to_text(addresses.version, addresses.high, addresses.low, length))

    def _aggregate(self, aggregate: Aggregate) -> Operand:
        if aggregate.argument is None:
            return Operand(self._groups.count)
        name, groups = aggregate.argument.name, self._groups
        (count,) = groups.states.get(State("count", name), (groups.count,))
        valid = None if (count > 0).all() else count > 0
        match aggregate.function:
            case "count":
                return Operand(count)
            case "sum":
                return Operand(self._sum(aggregate, name), valid)
            case "avg":
                with np.errstate(all="ignore"):
                    return Operand(self._float_sum(name) / count, valid)
        (numbers,) = groups.states[State(aggregate.function, name)]
        return Operand(self._typed(aggregate.type, value_component(name), numbers), valid)

    def _float_sum(self, name: str) -> Array:
        words = self._groups.states[State("sum", name)]
        if words[0].dtype == np.float64:
            return np.where(np.isfinite(words[0]), words[0] + words[1], words[0])
        narrow = words[0].astype(np.float64)
        if len(words) == 1:
            return narrow
        wide = words[1].astype(np.float64) * 2.0**64 + words[0].view(np.uint64).astype(np.float64)
        # The two words of a small negative sum would cancel; it fits the low word alone.
        return np.where(words[1] == words[0] >> 63, narrow, wide)

    def _sum(self, aggregate: Aggregate, name: str) -> Array:
        words = self._groups.states[State("sum", name)]
        if words[0].dtype == np.float64:
            return self._float_sum(name)
        if len(words) == 2 and (words[1] != words[0] >> 63).any():
            worst = int(np.flatnonzero(words[1] != words[0] >> 63)[0])
            start = np.datetime64(int(self._groups.window[worst]) * self._query.window.size, "us")
            raise RunError(
                f"{render(aggregate)} of query '{self._query.name}' leaves BIGINT in the window that starts at {start}",
                "use avg, sum a DOUBLE, or filter the large values",
            )
        return words[0]


def _strings(offsets: Array, data: Array) -> pa.Array:
    """An Arrow string array over these bytes."""
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_string(), len(offsets) - 1, buffers).cast(pa.string())


def _times(microseconds: Array) -> pa.Array:
    return pa.array(microseconds, pa.int64()).cast(TIME)
