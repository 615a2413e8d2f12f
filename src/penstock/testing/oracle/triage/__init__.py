"""The oracle of promised delays: what a run must give that left records unread, as its offsets say.

| module | gives |
| --- | --- |
| `reading` | which records are read, and how many each stands for: `Reading`, `read_records` |
| `errors` | one standard error of an estimate, in exact numbers |
| `linear` | which expressions are sums of constants times counts and sums, found out by asking |
| `estimates`, `groups` | groups of what was read, with `exact_x`, `estimated_x`, `error_x` |
| `expected` | rows and accounts of an app on one stream: `expect_triaged` |
| `joins` | the same where tables have several rows for a record: `expect_triaged_joins` |

Everything is computed again from the records and the logged ranges. A record that stands for w records is written down
w times; then every aggregate is what the oracle of exact results says of that.
"""

from __future__ import annotations

from penstock.testing.oracle.triage.expected import expect_triaged
from penstock.testing.oracle.triage.joins import expect_triaged_joins
from penstock.testing.oracle.triage.reading import Reading, key_of, read_records, whole_run

__all__ = ["Reading", "expect_triaged", "expect_triaged_joins", "key_of", "read_records", "whole_run"]
