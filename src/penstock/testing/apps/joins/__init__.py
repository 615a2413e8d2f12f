"""Parts of random apps of joins; `random_joins` puts them together.

| module | makes |
| --- | --- |
| `keys`, `values` | what streams are joined by; what may be said of a column |
| `streams`, `tables` | the data, with everything that breaks engines |
| `windows`, `clauses` | windows that fit together, conditions and aggregates |
| `places`, `asks`, `queries` | sides with what may be said of them, subqueries, whole queries |
| `sizes` | no data, but says whether there is too much of it |
"""

from __future__ import annotations
