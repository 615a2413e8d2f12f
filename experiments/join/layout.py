"""What the operator keeps, as arrays of 64-bit words: the columns of each, by name. Kernels and Python share it.

| array | a row is | columns |
| --- | --- | --- |
| `streams` | a stream | where its rows stand, how many there are, whether it is aggregated early |
| `windows` | a record of W_i; a stream's rows are a ring, oldest first | G, J, A, next of its bucket |
| `sets` | a group (G_i, J_i) of AS_i | G, J, next of its bucket, COUNT(*), ends of its multiset, values |
| `nodes` | a distinct value of a group's ordered multiset | the value, how often it is there, the next greater one |
| `outs` | a group of AS_out | COUNT(*), next of its bucket, next stale one, groups, values |
| `heads` | a bucket of stream i's hash tables on J_i | first and last of W_i, first of AS_i |
| `tops` | a bucket of AS_out's hash table on G_1 | first |
| `registers` | | rows used and free of `outs` and `nodes`; stale groups |
| `levels` | a stream, while one record is joined | what was found there: row, group, times |

Rows of `windows` that are free have J = NONE, so that a nested loop may run over them; `sets` then have no gaps.
"""

from __future__ import annotations

NONE = -1

# streams
FIRST, ROOM, OLDEST, SIZE, REACHED = 0, 1, 2, 3, 4  # W_i: first row, rows, place of the oldest, records, rows ever used
EARLY, BUCKETS, TABLE = 5, 6, 7  # an EA operator is on it; buckets, and the first of them in `heads`
SETS, SETS_REACHED, SETS_FREE, SETS_SIZE = 8, 9, 10, 11  # AS_i: first row, rows ever used, first free row, groups
ORDERED = 12  # some aggregate of it is MIN or MAX: groups have multisets
STREAM_COLUMNS = 13

# windows, and the first columns of sets
GROUP, KEY, NEXT, VALUE = 0, 1, 2, 3
WINDOW_COLUMNS = 4

# sets
COUNT, LEAST, MOST, VALUES = 3, 4, 5, 6

# nodes
TIMES, GREATER = 1, 2  # VALUE of a node stands in column 0
NODE_COLUMNS = 3

# outs
OUT_COUNT, OUT_NEXT, STALE, GROUPS = 0, 1, 2, 3
FRESH = -2  # STALE of a group whose extremes are right; else the next stale group

# heads
HEAD, TAIL, SET_HEAD = 0, 1, 2
HEAD_COLUMNS = 3

# registers
OUT_REACHED, OUT_FREE, OUT_SIZE, NODE_REACHED, NODE_FREE, FIRST_STALE = 0, 1, 2, 3, 4, 5
REGISTERS = 6

# levels
CURSOR, ROW, TOLD, OFTEN = 0, 1, 2, 3  # where to go on; the row found; its group; how many records it stands for
LEVEL_COLUMNS = 4

# aggregates
OF_STREAM, KIND = 0, 1
SUM, MIN, MAX = 0, 1, 2

# events
STREAM, SIGN, EVENT_GROUP, EVENT_KEY, EVENT_VALUE = 0, 1, 2, 3, 4
EVENT_COLUMNS = 5
