"""Compiled loops over arrays: numpy and numba only, no pyspark, no Arrow.

| module       | what it does                                                                       |
|--------------|------------------------------------------------------------------------------------|
| `jit`        | array types, the one place with compiler flags; `ahead`: compile all kernels now   |
| `hashing`    | the 64-bit mix used for tables, dictionaries and slots                             |
| `pack`       | components of attributes and panes into packed key words, and to a relation's key  |
| `tables`     | the exact growable table and the direct-mapped table that evicts on collision      |
| `fold`       | fold values or partial states into the rows of a table: sums, extremes, moments    |
| `dictionary` | byte strings to dense codes and back                                               |
| `inet`       | text to addresses and back                                                         |
| `columns`    | values of a segment put in order and narrowed                                      |
| `order`      | canonical hash of a group, and the order (pane, slot) of a segment                 |
| `merge`      | rows of many runs into groups, cell by cell                                        |
| `text_index` | where the records of a text begin: lines, and what the next four share             |
| `text_csv`   | records of CSV and the spans of their fields                                       |
| `text_json`  | lines of JSON and the spans of the values asked for                                |
| `text_parse` | spans to integers, doubles, booleans and text                                      |
| `text_times` | spans to times                                                                     |
| `capture`    | records of captures, pcap and pcapng; `capture_times`: their times                 |
| `packet_*`   | a packet's headers (`layers`, by `link`, `ip`, `tunnel`, in the numbers of `layout`) and `fields` |

A chunk of tuples goes through a relation at a time: pack → project → probe → fold. Text goes through a block at a time:
index → spans → values, packets: records → layers → fields. There is no Python loop over tuples, groups or fields
anywhere above these loops.
"""
