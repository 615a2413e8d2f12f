"""What a run shows of itself.

| module | shows |
| --- | --- |
| `progress` | a display while a run goes on |
| `account` | its account at the end |
| `lines` | its log, as lines |
| `analyze`, `analyze_joins` | what tables and joins of a plan really did, beside what was predicted |

May touch reports and counters of `runtime`; changes nothing.
"""
