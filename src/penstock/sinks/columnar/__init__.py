"""Parquet files of results, written by our own hands: results come in a few types, and how they repeat is known.

| module | has |
| --- | --- |
| `thrift` | the bytes of Parquet's headers |
| `footer` | what a file tells of itself: schema, places, statistics |
| `pages` | a column as pages |
| `write` | the file |
"""
