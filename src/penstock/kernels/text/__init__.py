"""Compiled loops over text.

| module | what it does |
| --- | --- |
| `index` | finds lines; what the next two share |
| `csv` | finds records of CSV and the spans of their fields |
| `json` | finds the spans of values in lines of JSON |
| `parse` | turns spans into numbers, booleans and text |
| `times` | turns spans into times |
"""

from __future__ import annotations
