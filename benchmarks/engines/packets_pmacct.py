"""pmacctd reading a capture, with a table in memory for each query that it can answer, printed at the end.

Every table is a process (plugin) that the core process feeds over a ring of its own. The core does not wait for
them: where a ring is full, packets are lost. So this runs on a prefix that fits the rings. A minute is the finest
window; each window becomes a file. Most of the wall time is waiting that does not depend on the packets: two
seconds before it starts to read, and some at its end; processor time says more.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pc_csv

from benchmarks.measure.cpu import adopt, own_seconds, wait_for_all
from benchmarks.measure.job import Answer, PacketJob, elapsed, serve_packets, timed
from benchmarks.packets.fields import canonical
from benchmarks.packets.queries import PMACCT, QUERIES, Dialect, PacketQuery
from benchmarks.packets.reference import digest_answer

RING, BUFFER = 100 << 20, 100 << 10
COMMON = (
    "daemonize: false", f"plugin_pipe_size: {RING}", f"plugin_buffer_size: {BUFFER}", "print_num_protos: true",
    "print_output: csv", "print_refresh_time: 86400", "print_history_roundoff: m", "print_cache_entries: 32771",
)  # fmt: skip
MASKS = {"nets24": 24, "nets16": 16}
ADDRESSES = ("src", "dst", "net")


def run(job: PacketJob) -> Answer:
    folder = Path(job.work)
    file = folder / "pmacctd.conf"
    file.write_text("\n".join(configuration(job)) + "\n")
    adopt()
    before = own_seconds()
    seconds, _ = timed(lambda: _execute(file))
    used = own_seconds() - before
    digests = tuple(_digest(folder, query) if query.name in PMACCT else "" for query in QUERIES)
    return Answer(_version(), seconds, job.rows, elapsed(job), digests, cpu_seconds=used)


def configuration(job: PacketJob) -> list[str]:
    """Lines of pmacctd's file: a plugin for each query."""
    names = [query.name for query in QUERIES if query.name in PMACCT]
    lines = [*COMMON, f"pcap_savefile: {job.file}", "plugins: " + ", ".join(f"print[{name}]" for name in names)]
    for query in QUERIES:
        if query.name in PMACCT:
            lines += _plugin(job, query.name, query.seconds, PMACCT[query.name])
    return lines


def _plugin(job: PacketJob, name: str, seconds: int, dialect: Dialect) -> list[str]:
    lines = [
        f"aggregate[{name}]: {dialect.aggregate}",
        f"print_output_file[{name}]: {job.work}/{name}-%s.csv",
        f"print_history[{name}]: {max(60, seconds) // 60}m",
    ]
    if name in MASKS:
        lines.append(f"networks_mask[{name}]: {MASKS[name]}")
    return lines


def _execute(file: Path) -> None:
    with (file.parent / "log").open("wb") as log:
        subprocess.run(["pmacctd", "-f", str(file)], check=True, stdout=log, stderr=log)
    wait_for_all()


def _digest(folder: Path, query: PacketQuery) -> str:
    tables = []
    for path in sorted(folder.glob(f"{query.name}-*.csv")):
        table: Any = pc_csv.read_csv(path)
        columns = [name for name in table.column_names if not name.endswith("_MASK")]
        tables.append(table.select(columns).rename_columns([*_names(columns[:-2]), "packets", "bytes"]))
    if not tables:
        return "0:0000000000000000"
    whole = _comparable(query, pa.concat_tables(tables, promote_options="permissive"))
    groups = whole.group_by(list(query.names)).aggregate([("packets", "sum"), ("bytes", "sum")])
    keys = [_plain(query, name, groups[name]) for name in query.names]
    return digest_answer(keys, None, groups["packets_sum"], groups["bytes_sum"])


def _comparable(query: PacketQuery, table: Any) -> Any:
    """Rows that the scope of the query's dialect covers."""
    kind = PMACCT[query.name].scope.packets
    if kind == "ipv4":
        return table.filter(pc.invert(pc.match_substring(table["net"], ":")))
    if kind != "transport":
        return table
    if "proto" in query.names:
        return table.filter(pc.is_in(table["proto"], pa.array([6, 17])))
    return table.filter(pc.greater(pc.add(table["sport"], table["dport"]), 0))


def _names(columns: list[str]) -> list[str]:
    """Our names of its fields, which it prints in an order of its own."""
    known = {"SRC_IP": "src", "DST_IP": "dst", "SRC_PORT": "sport", "DST_PORT": "dport", "PROTOCOL": "proto"}
    return [known.get(name, "net") for name in columns]


def _plain(query: PacketQuery, name: str, column: Any) -> Any:
    if name not in ADDRESSES:
        return column
    coded = column.combine_chunks().dictionary_encode()
    texts = canonical(coded.dictionary.to_pylist())
    suffix = f"/{MASKS[query.name]}" if query.name in MASKS else ""
    return pa.DictionaryArray.from_arrays(coded.indices, pa.array([f"{text}{suffix}" for text in texts]))


def _version() -> str:
    done = subprocess.run(["pmacctd", "-V"], capture_output=True, text=True, check=False)
    words = done.stdout.split()
    return words[words.index("pmacctd") + 1] if "pmacctd" in words else ""


if __name__ == "__main__":
    serve_packets(run)
