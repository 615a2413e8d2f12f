"""Tags of classes that stand beside others in a union: how files say which of them is meant (`state.data`).

A tag is for ever, wherever its class moves and whatever it is called. One that is not used any more stays unused.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.logical import expressions
from penstock.relations import closing

TAGS: Mapping[str, type] = {
    # Expressions, and attributes that are grouped by.
    "column": expressions.Column,
    "prefix": expressions.Prefix,
    "computed": expressions.Computed,
    "literal": expressions.Literal,
    "aggregate": expressions.Aggregate,
    "listed": expressions.Listed,
    "bucket": expressions.Bucket,
    "window_end": expressions.WindowEnd,
    "record_number": expressions.RecordNumber,
    "sound": expressions.Sound,
    "triaged": expressions.Triaged,
    "arithmetic": expressions.Arithmetic,
    "comparison": expressions.Comparison,
    "logic": expressions.Logic,
    "not": expressions.Not,
    "is_null": expressions.IsNull,
    "in_list": expressions.InList,
    "like": expressions.Like,
    "case": expressions.Case,
    "cast": expressions.Cast,
    "call": expressions.Call,
    "lookup": expressions.Lookup,
    # How queries close.
    "finish": closing.Finish,
    "roll_up": closing.RollUp,
}
