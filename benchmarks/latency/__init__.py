"""The benchmark `latency`: promised delays in bursts of known size, beside what else one could do about them.

    capacity (a short run, dragged) ──► trials: runs by the clock ──► windows: delays, errors ──► shown, picture
                                          └── stalls: did the machine itself stop?

| module | has |
| --- | --- |
| `bursts` | the benchmark, and its parts |
| `queries` | a dozen queries that promise a delay |
| `trial` | one run through one burst: its windows, with their delays and errors |
| `stalls` | a process that sleeps, and notes when it was woken late |
| `promises` | peaks of 2, 5, 10 times what can be read, several times |
| `beside` | one peak, read by other rules: queue, capped batches, drop, summarise, a reservoir |
| `reading` | undragged: what a record costs that is read, and one that is not, by source |
| `skipping` | what reading costs by source, all of it or picks, without queries |
| `soak` | burst after burst, and the memory of all processes |
| `shown`, `picture` | tables, and a picture |
"""

from __future__ import annotations
