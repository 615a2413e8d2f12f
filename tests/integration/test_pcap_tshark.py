"""Captures as tshark reads them: every packet's time, lengths, addresses, ports and TCP numbers; counts by queries.

Uses the captures beside the repository (`../shared/data`); skipped where they or tshark are absent.
"""

from __future__ import annotations

import io
import ipaddress
import lzma
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import SourceError
from penstock.sources.base import ADDRESS, UNREADABLE, Split
from penstock.sources.registry import open_source
from penstock.testing.asserts import assert_account_closes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Array = np.ndarray[Any, Any]
DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
FOLDERS = (DATA / "packets", DATA / "parser" / "misc")
FILES = [file for folder in FOLDERS if folder.is_dir() for file in sorted(folder.iterdir())]
OTHERS = (".ipfix", ".sample", ".nfdump", ".binetflow")
CAPTURES = [file for file in FILES if file.suffix not in OTHERS]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("tshark") is None, reason="no tshark"),
    pytest.mark.skipif(not CAPTURES, reason=f"no captures at {DATA}"),
]

FIELDS = (
    "frame.time_epoch", "frame.len", "frame.cap_len", "frame.protocols", "eth.src", "eth.dst", "vlan.id",
    "ieee8021ad.id", "mpls.label", "ip.src", "ip.dst", "ipv6.src", "ipv6.dst", "ip.proto", "ip.len", "ipv6.plen",
    "ip.ttl", "ipv6.hlim", "ip.id", "tcp.srcport", "tcp.dstport", "udp.srcport", "udp.dstport", "sctp.srcport",
    "sctp.dstport", "tcp.flags", "tcp.seq_raw", "tcp.ack_raw", "tcp.window_size_value", "icmp.type", "icmp.code",
    "icmpv6.type", "icmpv6.code",
)  # fmt: skip
# Packets are judged one by one, as here: nothing is put together again.
SETTINGS = (
    "ip.defragment:FALSE", "ipv6.defragment:FALSE", "tcp.desegment_tcp_streams:FALSE",
    "tcp.relative_sequence_numbers:FALSE",
)  # fmt: skip
EXTENSIONS = {"ipv6.hopopts", "ipv6.dstopts", "ipv6.routing", "ipv6.fraghdr", "ah", "mip6", "hip", "shim6", "ipv6.opts"}
JUMBO = "tshark 4.0 does not know that a payload length of 0 may be a jumbo packet without its option (BIG TCP)"
# Columns that differ: in how many packets, and why.
DIFFERENT: dict[str, dict[str, tuple[int, str]]] = {
    "ndpi_sflow.pcap": {"vlan": (1, "tshark shows the tag of a frame that an sFlow sample describes")},
    "nfstream_ip_fragmented_garbage.pcap": {
        "seq": (
            23,
            "of a TCP header that says it has less than 20 bytes, tshark shows the number; here it is malformed",
        )
    },
    "suricata_frag_vlan_tcp_syn.pcap": {"seq": (1, "of a TCP header that is cut short, tshark shows no number")},
    "tcpdump_bigtcp-ipv6.pcap": dict.fromkeys(
        ("ip_length", "sport", "dport", "tcp_flags", "seq", "ack", "tcp_window"), (1, JUMBO)
    ),
}


def plain(file: Path, tmp_path: Path) -> Path:
    """A file that tshark can read: it does not know xz."""
    if file.suffix != ".xz":
        return file
    with lzma.open(file) as packed, (tmp_path / file.stem).open("wb") as out:
        shutil.copyfileobj(packed, out)
    return tmp_path / file.stem


def theirs(file: Path) -> pd.DataFrame:
    command = ["tshark", "-n", "-r", str(file), "-T", "fields", "-E", "header=y", "-E", "occurrence=f"]
    for setting in SETTINGS:
        command += ["-o", setting]
    for name in FIELDS:
        command += ["-e", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # it minds damage, as in some of these
    return pd.read_csv(io.StringIO(done.stdout), sep="\t", dtype=str, keep_default_na=False)


def ours(file: Path) -> pa.Table:
    source = open_source(f"pcap:{file}", {})
    names = source.schema().names
    batches = [batch.select(names) for batch in source.read(Split(0, source.rows()), names, 1 << 20)]
    return pa.Table.from_batches(batches).combine_chunks().unify_dictionaries()


def numbers(texts: pd.Series) -> Array:
    """Numbers, −1 where there is none; each different text is read once."""
    codes, different = pd.factorize(texts)
    known: Array = np.array([int(text, 0) if text else -1 for text in different], np.int64)[codes]
    return known


def microseconds(texts: pd.Series) -> Array:
    parts = texts.str.partition(".")
    return numbers(parts[0]) * 1_000_000 + parts[2].str.ljust(6, "0").str[:6].astype(np.int64).to_numpy()


def layers(protocols: pd.Series) -> tuple[Array, Array]:
    """(name of the outermost IP header, of what follows it): what tshark shows may belong to a packet inside."""
    codes, different = pd.factorize(protocols)
    found = [("", "")] * len(different)
    for number, text in enumerate(different):
        names = text.split(":")
        at = next((i for i, name in enumerate(names) if name in ("ip", "ipv6")), None)
        if at is not None:
            rest = [name for name in names[at + 1 :] if name not in EXTENSIONS]
            found[number] = (names[at], rest[0] if rest else "")
    both = np.array(found, object).reshape(-1, 2)[codes]
    return both[:, 0], both[:, 1]


def expected(read: pd.DataFrame) -> dict[str, Array]:
    net, transport = layers(read["frame.protocols"])

    def of_net(four: str, six: str, more: int = 0) -> Array:
        first, second = numbers(read[four]), numbers(read[six])
        return np.where(net == "ip", first, np.where((net == "ipv6") & (second >= 0), second + more, -1))

    def address(name: str) -> Array:
        return np.where(net == "ip", read[f"ip.{name}"], np.where(net == "ipv6", read[f"ipv6.{name}"], ""))

    def of_transport(**fields: str) -> Array:
        found = np.full(len(read), -1, np.int64)
        for name, field in fields.items():
            found = np.where(transport == name, numbers(read[field]), found)
        return found

    # The outer of two tags is, in tshark, of a protocol of its own.
    service, tag = numbers(read["ieee8021ad.id"]), numbers(read["vlan.id"])
    flags = of_transport(tcp="tcp.flags")
    return {
        "ts": microseconds(read["frame.time_epoch"]),
        "length": numbers(read["frame.len"]),
        "captured": numbers(read["frame.cap_len"]),
        "src_mac": read["eth.src"].to_numpy(object),
        "dst_mac": read["eth.dst"].to_numpy(object),
        "vlan": np.where(service >= 0, service, tag),
        "mpls": numbers(read["mpls.label"]),
        "src": address("src"),
        "dst": address("dst"),
        "ttl": of_net("ip.ttl", "ipv6.hlim"),
        "ip_length": of_net("ip.len", "ipv6.plen", 40),
        "ip_id": np.where(net == "ip", numbers(read["ip.id"]), -1),
        "sport": of_transport(tcp="tcp.srcport", udp="udp.srcport", sctp="sctp.srcport"),
        "dport": of_transport(tcp="tcp.dstport", udp="udp.dstport", sctp="sctp.dstport"),
        "tcp_flags": np.where(flags >= 0, flags & 0xFF, -1),
        "seq": of_transport(tcp="tcp.seq_raw"),
        "ack": of_transport(tcp="tcp.ack_raw"),
        "tcp_window": of_transport(tcp="tcp.window_size_value"),
        "icmp_type": of_transport(icmp="icmp.type", icmpv6="icmpv6.type"),
        "icmp_code": of_transport(icmp="icmp.code", icmpv6="icmpv6.code"),
    }


def values(table: pa.Table, name: str) -> Array:
    """As those of `expected`: −1 or an empty text where there is none."""
    column = table.column(name)
    if column.type == ADDRESS:
        flat = pd.Series(addresses(column))
        return flat.to_numpy(object)
    if pa.types.is_dictionary(column.type):
        return column.cast(pa.string()).fill_null("").to_numpy()
    return column.cast(pa.int64()).fill_null(-1).to_numpy()


def addresses(column: pa.ChunkedArray) -> Array:
    found = np.full(len(column), "", object)
    if not len(column):
        return found
    array = column.combine_chunks()
    there = array.is_valid().to_numpy(zero_copy_only=False)
    long = array.field(1).is_valid().to_numpy(zero_copy_only=False)
    for part, rows in ((array.field(0), there & ~long), (array.field(1), there & long)):
        codes, different = pd.factorize(part.filter(pa.array(rows)).to_numpy(zero_copy_only=False))
        texts = [str(ipaddress.ip_address(one if isinstance(one, bytes) else int(one))) for one in different]
        found[rows] = np.array(texts, object)[codes] if texts else ""
    return found


@pytest.mark.parametrize("file", CAPTURES or [DATA], ids=lambda file: file.name)
def test_every_packet_is_as_tshark_reads_it(file: Path, tmp_path: Path) -> None:
    read, table = theirs(plain(file, tmp_path)), ours(file)
    assert len(read) == table.num_rows > 0
    assert UNREADABLE not in table.column_names
    wanted, known = expected(read), DIFFERENT.get(file.name, {})
    for name, column in wanted.items():
        differ = np.flatnonzero(values(table, name) != column)
        some = [(int(i) + 1, values(table, name)[i], column[i], read["frame.protocols"][i]) for i in differ[:3]]
        assert len(differ) == known.get(name, (0, ""))[0], (name, some)
    assert int(values(table, "length").sum()) == int(wanted["length"].sum())
    four = values(table, "version") == 4
    protocol = np.where(layers(read["frame.protocols"])[0] == "ip", numbers(read["ip.proto"]), -1)
    assert count(protocol) == count(np.where(four, values(table, "proto"), -1))


def count(numbers: Array) -> dict[int, int]:
    different, often = np.unique(numbers, return_counts=True)
    return dict(zip(different.tolist(), often.tolist(), strict=True))


@pytest.mark.parametrize(
    "file", [file for file in FILES if file.suffix in OTHERS] or [DATA], ids=lambda file: file.name
)
def test_files_of_flows_are_no_captures(file: Path) -> None:
    with pytest.raises(SourceError, match="is not a capture: it begins with"):
        open_source(f"pcap:{file}", {})


QUERIES = {
    "protocols": "SELECT proto, count(*) AS n, sum(length) AS bytes FROM p [RANGE '1 day'] GROUP BY proto",
    "talkers": "SELECT src, count(*) AS n, sum(length) AS bytes FROM p [RANGE '1 day'] WHERE version = 4 GROUP BY src",
}


@pytest.mark.parametrize("name", ["campus_dns_1min_2017.pcap", "ddos_synflood_spoofed.pcap"])
def test_queries_count_as_tshark_does(name: str, spark: SparkSession, tmp_path: Path) -> None:
    import penstock as ps

    file = DATA / "packets" / name
    text = f"CREATE STREAM p FROM 'pcap:{file}';\n" + "\n".join(f"CREATE QUERY {q} AS {t};" for q, t in QUERIES.items())
    run = ps.App(spark).sql(text).start(str(tmp_path / "ckpt"), output=str(tmp_path / "out"), batch_rows=10_000)
    run.await_end()
    assert_account_closes(run.summary())
    found = {query: pq.read_table(tmp_path / "out" / query).to_pandas() for query in QUERIES}
    read = theirs(file)
    net, _ = layers(read["frame.protocols"])
    frame = pd.DataFrame({"proto": numbers(read["ip.proto"]), "length": numbers(read["frame.len"])})[net == "ip"]
    grouped = frame.groupby("proto")["length"].agg(["count", "sum"])
    rows = found["protocols"].dropna(subset="proto").groupby("proto")[["n", "bytes"]].sum()
    assert {int(k): tuple(v) for k, v in rows.iterrows()} == {int(k): tuple(v) for k, v in grouped.iterrows()}
    talkers = found["talkers"].groupby("src")[["n", "bytes"]].sum()
    assert {str(k): tuple(v) for k, v in talkers.iterrows()} == endpoints(file)


def endpoints(file: Path) -> dict[str, tuple[int, int]]:
    """Packets and bytes that each IPv4 address sent, by tshark's own statistics."""
    command = ["tshark", "-n", "-q", "-r", str(file), "-z", "endpoints,ip"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    rows = [line.split() for line in lines if line[:1].isdigit()]
    return {row[0]: (int(row[3]), int(row[4])) for row in rows if int(row[3])}
