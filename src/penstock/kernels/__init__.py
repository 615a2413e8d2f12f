"""Compiled loops over arrays: numpy and numba only, no pyspark, no Arrow.

| module       | what it does                                                                       |
|--------------|------------------------------------------------------------------------------------|
| `jit`        | array types, the one place with compiler flags                                     |
| `hashing`    | the 64-bit mix used for tables, dictionaries and slots                             |
| `pack`       | components of attributes into packed key words, projection to a relation's key     |
| `tables`     | the exact growable table and the direct-mapped table that evicts on collision      |
| `fold`       | fold values or partial states into the rows of a table                             |
| `dictionary` | byte strings to dense codes and back                                               |
| `inet`       | text to addresses and back                                                         |
| `order`      | canonical hash of a group, and the order (window, slot) of a segment               |

A chunk of tuples goes through a relation at a time: pack → project → probe → fold; there is no Python loop
over tuples or groups anywhere above these loops.
"""
