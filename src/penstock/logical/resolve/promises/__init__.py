"""LIMIT DELAY TO: results in time, estimated where a burst leaves no other way.

| module | resolves |
| --- | --- |
| `clause` | which queries may promise a delay, and which delay of which stream |
| `columns` | what the results say besides: what was read, what is estimated, how far that may be off |
| `keep` | ON OVERLOAD KEEP: what a stream keeps in a burst |

All of it depends on the text alone: the columns are the same whether anything is estimated or not.
"""

from __future__ import annotations
