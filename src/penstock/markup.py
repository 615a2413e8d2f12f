"""Small tables in HTML, for notebooks: what `_repr_html_` of an app, a plan, a run and an account are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

CELL = "padding:2px 8px;vertical-align:top"


def html_table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with a caption; numbers stand at the right. Whatever is given is text, never markup.

    >>> html_table("t", ["a"], [["<b>"]]).count("&lt;b&gt;")
    1
    """
    head = "".join(f'<th style="{CELL};text-align:left">{escape(column)}</th>' for column in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    title = f'<caption style="caption-side:top;text-align:left;font-weight:bold">{escape(caption)}</caption>'
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_pairs(caption: str, pairs: Iterable[tuple[str, object]]) -> str:
    """What is called what, a line each; pairs without a value are left out."""
    return html_table(caption, [], ([name, value] for name, value in pairs if value is not None and value != ""))


def html_lines(lines: Iterable[str]) -> str:
    return "".join(f'<div style="{CELL}">{escape(line)}</div>' for line in lines)


def _cell(value: object) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    shown = "" if value is None else f"{value:,}" if isinstance(value, int) and number else str(value)
    if isinstance(value, float):
        shown = f"{value:,.4g}"
    return f'<td style="{CELL};text-align:{"right" if number else "left"}">{escape(shown)}</td>'
