"""Benchmarks side by side with other engines: same file, same queries, one after the other, answers compared.

    multiquery.run ──► data (Parquet files) ──► peers.run_engine: a process per engine ──► engines.<name>
       ▲ contenders                                                                           │
    table.show ◄── results, ratios, same_answer ◄── digests compared with engines.arrow ◄─────┘

    packets.run ──► traces (captures, frames: pcap files) ──► the same, engines.packets_<name>
                       └──► packet_fields (tshark), packet_reference ──► compared with their answers

    planning.run    plans alone, in this process
    scaling.run     penstock alone: more queries, data, cores

`packet_queries` has the dozen queries of `packets` and how peers are asked; `cpu` is processor time. `job` is what
goes to an engine's process and comes back, `jobs` makes it from data; `digest` makes answers comparable; `machine` says
where it ran; `memory` measures how penstock's memory grows with the stream, `parts` (by `engines.penstock_parts` and
`profiled`) where its time goes; `figures` has tables beside those of `table`.
To add an engine: one module in `benchmarks.engines`, and one line in `contenders.CONTENDERS` or `packets.CONTENDERS`.
"""
