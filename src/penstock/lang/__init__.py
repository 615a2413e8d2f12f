"""The language: app text to statements, every word with its place.

    text.py         the app's text, `${variables}` filled in, offsets mapped back to lines and columns
    dialect.py      the sqlglot dialect: SQL's lexis plus ours
    cursor.py       walks tokens; "expected ..., found ..." errors
    expressions.py  scalar expressions, as sqlglot nodes
    selects.py      SELECT with windows, EVERY, LIMIT DELAY TO
    statements.py   CREATE STREAM, TABLE, QUERY
    foreign.py      how other engines write windows, for messages
    durations.py    '5 minutes' to microseconds
    sizes.py        '64KiB' to bytes
    ast.py          what comes out
    parse.py        the entry: `parse_app`, `parse_select`

Names and types are not looked at here: that is `logical.resolve.app`, which imports this package, never the reverse.
The whole grammar parses, also what no engine executes yet; refusing is `logical`'s business.
"""

from __future__ import annotations
