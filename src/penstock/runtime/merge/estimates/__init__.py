"""What a burst has left unread, estimated when a window closes (seed data-triage; rules: docs/design).

| module | does |
| --- | --- |
| `picks` | how many records of each weight a window holds |
| `weights` | groups in which each record counts as often as records that it stands for |
| `linear` | expressions that add up: constants times counts and sums |
| `errors` | how far estimates may be off |
| `estimated` | groups, weighted groups and errors of one query together |
| `made` | makes these of what is stored |
"""

from __future__ import annotations
