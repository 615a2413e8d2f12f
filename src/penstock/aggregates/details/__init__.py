"""Aggregates that must know the values of a group: each is made of a finer relation, whose key has the value besides.

| module | has |
| --- | --- |
| `function` | what such a function is: its finer key, its rows, what it makes of them |
| `distinct` | any plain function of distinct values |
| `entropy` | entropy |
| `percentiles` | percentile, median |
| `buckets` | approx_percentile |
| `registers` | approx_count_distinct |
| `frequent` | frequent, approx_frequent |

May touch `aggregates`, but for its registry, and `logical`.
"""
