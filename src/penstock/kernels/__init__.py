"""Compiled loops over arrays: numpy and numba only, no pyspark, no Arrow.

| module | what it does |
| --- | --- |
| `jit` | array types, and the one place with compiler flags |
| `store` | where compiled kernels are kept if numba finds no place |
| `hashing` | the 64-bit mix used for tables, dictionaries and slots |
| `prefetch` | asks for memory ahead of its use |
| `dictionary` | byte strings to dense codes and back |
| `inet` | text to addresses and back |
| `ahead` | compiles all kernels now |

| room | what its loops go over |
| --- | --- |
| `tables` | packed keys and the rows of tables: pack, probe, fold, merge |
| `lookups` | values of records, and what a table has for them |
| `text` | text: index → spans → values |
| `packets` | captures: records → layers → fields |

A chunk of records goes through one relation at a time: pack → project → probe → fold. Text and packets go through a
block at a time. No Python loop above these goes over records, groups or fields.
"""
