"""Benchmarks side by side with other engines: same file, same queries, one after the other, answers compared.

    comparisons.multiquery ──► data (Parquet files) ──► comparisons.peers: a process per engine ──► engines.<name>
                                                                                                        │
    measure.table ◄── ratios, same_answer ◄── digests compared with engines.arrow ◄─────────────────────┘

    comparisons.packets ──► data.traces (pcap files) ──► the same, engines.packets_<name>
                               └──► packets.fields (tshark), packets.reference ──► compared with their answers

| room, module | has |
| --- | --- |
| `command` | what `penstock bench` calls |
| `comparisons` | one module for most benchmarks, and the engines that it compares |
| `data` | the records that benchmarks read |
| `engines` | one program for each engine |
| `packets` | the queries of the benchmark `packets`, and reference answers |
| `latency` | the benchmark `latency`: bursts, their errors, other ways to deal with them |
| `measure` | jobs, digests, processor time, memory, tables |

Outside the wheel: `penstock bench` finds it in a checkout. May touch all of penstock; nothing below `src/` imports it.
To add an engine: one module in `engines`, and one line in `comparisons.contenders.CONTENDERS` or
`comparisons.packets.CONTENDERS`.
"""
