"""ON OVERLOAD KEEP: what is kept of a stream in a burst. It is judged only where a query promises a delay."""

from __future__ import annotations

from sqlglot import exp

from penstock.errors import QueryError
from penstock.lang.ast import Overload, span_of
from penstock.lang.text import AppText
from penstock.logical.query import KEPT
from penstock.logical.resolve.scopes import suggestion, unwrap
from penstock.logical.values import constants

MOST = 1_000_000
_RESERVOIR, _AUTO = "RESERVOIR", "AUTO"
_LATER = ("GRID", "MHIST", "WAVELET")
_USAGE = f"write KEEP RESERVOIR (n): about n records of a window are read at least, n from 1 to {MOST:,}"


def kept(overload: Overload | None, text: AppText) -> int | None:
    """The size of a stream's reservoir; None: the default. What is wrong with the clause is said when it matters."""
    try:
        return reservoir(overload, text)
    except QueryError:
        return None


def reservoir(overload: Overload | None, text: AppText) -> int | None:
    """The same, of a stream that promises rest on."""
    if overload is None:
        return None
    kind, parameters = overload.kind.text.upper(), overload.parameters
    if kind in _LATER:
        hint = f"KEEP RESERVOIR ({KEPT}) keeps records instead, and is what KEEP AUTO means"
        raise text.error(overload.kind.span, f"KEEP {kind} is not executable yet", hint)
    if kind not in (_RESERVOIR, _AUTO):
        hint = suggestion(overload.kind.text, (_RESERVOIR, *_LATER, _AUTO), "the kinds")
        raise text.error(overload.kind.span, f"'{overload.kind.text}' is no summary to keep", hint)
    if not parameters:
        return None
    if kind == _AUTO:
        raise text.error(span_of(parameters[0]), "KEEP AUTO takes no size", _USAGE)
    if len(parameters) > 1:
        raise text.error(span_of(parameters[1]), "a reservoir has one size", _USAGE)
    return _size(parameters[0], text)


def _size(parameter: exp.Expr, text: AppText) -> int:
    node = unwrap(parameter)
    size = constants.whole(node.name) if isinstance(node, exp.Literal) and not node.is_string else None
    if size is None or not 1 <= size <= MOST:
        written = text.at(span_of(parameter))
        raise text.error(span_of(parameter), f"a reservoir cannot keep {written} records", _USAGE)
    return size
