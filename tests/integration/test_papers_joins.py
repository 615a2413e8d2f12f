"""The joins of the papers, run as they are printed, and DuckDB at every instant.

Packets are those of the captures beside the repository (`../shared/data`), or generated; the table has 12,000 networks
and more, some of them around the sources of the packets. What DuckDB is asked is written out here: the instants, the
records that a window holds at each, and the SELECT over them.
"""

from __future__ import annotations

import lzma
import random
import re
import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.app.api import App
from penstock.sources.base import whole
from penstock.sources.generate.source import open_generate
from support.networks import Owned, networks, write_csv

PAPERS = (Path(__file__).parents[1] / "golden" / "check" / "papers.sql").read_text(encoding="utf-8")
CAPTURES = Path(__file__).resolve().parents[3] / "shared" / "data" / "packets"
SECOND = 1_000_000
IPV4, IPV6 = 0x0800, 0x86DD
EARLY, LATE = "early", "late"
DELAY = "limit delay to '1 second'"  # taken out: its stream keeps MHIST, which no promise can rest on yet
ELEPHANT = 1000  # packets, in the paper

Row = tuple[Any, ...]


def statement(kind: str, name: str, clauses: str = "") -> str:
    """A statement of the papers, with more clauses at its end."""
    found = re.search(rf"^CREATE {kind} {name} .*?;$", PAPERS, re.MULTILINE | re.DOTALL)
    assert found is not None
    return f"{found[0].removesuffix(';')} {clauses};\n"


# -- packets


@dataclass(frozen=True)
class Packet:
    """What the paper's stream has of a packet; no addresses where it has none."""

    source: str | None
    target: str | None
    length: int
    at: int


def captured(path: Path) -> Iterator[Packet]:
    """The packets of a capture: Ethernet, little endian, microseconds."""
    data = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
    assert struct.unpack_from("<I16xI", data) == (0xA1B2C3D4, 1)
    place = 24
    while place + 16 <= len(data):
        seconds, parts, kept, length = struct.unpack_from("<IIII", data, place)
        frame = data[place + 16 : place + 16 + kept]
        place += 16 + kept
        kind = int.from_bytes(frame[12:14], "big")
        sides = {IPV4: (frame[26:30], frame[30:34]), IPV6: (frame[22:38], frame[38:54])}.get(kind)
        one, other = (None, None) if sides is None else map(str, map(ip_address, sides))
        yield Packet(one, other, length, seconds * SECOND + parts)


def traffic(count: int, seed: int = 3) -> Iterator[Packet]:
    """A minute of packets; a few pairs of addresses have thousands in ten seconds, and not in all of them."""
    rng = random.Random(seed)
    hosts = [f"{rng.choice([128, 192, 24])}.{rng.choice([32, 168])}.{rng.randrange(9)}.{n}" for n in range(60)]
    hosts += [f"2607:f140:{n:x}::1" for n in range(1, 9)]
    heavy = [tuple(rng.sample(hosts, 2)) for _ in range(6)]
    for number in range(count):
        at = number * 60 * SECOND // count
        loud = heavy[at // (10 * SECOND) % 3 : at // (10 * SECOND) % 3 + 2]
        source, target = rng.choice(loud) if rng.random() < 0.7 else rng.sample([*hosts, None], 2)
        yield Packet(source, target, rng.randrange(40, 1500), 1_800_000_003 * SECOND + at - rng.randrange(SECOND // 2))


def whois(packets: Iterable[Packet], seed: int = 5) -> list[Owned]:
    """Networks of the world, and some around the sources of these packets, inside each other."""
    rng = random.Random(seed)
    listed = networks()
    known = {one.network for one in listed}
    for source in sorted({packet.source for packet in packets if packet.source is not None}):
        if ip_address(source).version == 4 and rng.random() < 0.3:
            network = ip_network(f"{source}/{rng.choice([12, 16, 20, 24, 28])}", strict=False)
            if network not in known:
                known.add(network)
                listed.append(
                    Owned(network, rng.choice(["berkeley.edu", "cs.berkeley.edu", "berkeley.edu.org", "a.de"]))
                )
    return listed


def key(address: str | None) -> str | None:
    """Addresses in order, as text: IPv4 before IPv6."""
    return None if address is None else f"{(one := ip_address(address)).version}{int(one):032x}"


@dataclass(frozen=True)
class Ran:
    """A folder with the results of the papers' queries on packets, and a database that knows packets and networks."""

    folder: Path
    database: duckdb.DuckDBPyConnection
    summary: dict[str, Any]

    def results(self, query: str, columns: str) -> Counter[Row]:
        found = self.database.sql(
            f"SELECT epoch_us(window_start), epoch_us(window_end), {columns} FROM '{self.folder}/out/{query}/*.parquet'"
        )
        return Counter(found.fetchall())

    def expected(self, text: str) -> Counter[Row]:
        return Counter(self.database.sql(text).fetchall())


def prepared(packets: list[Packet], folder: Path) -> duckdb.DuckDBPyConnection:
    """Files for the app, and the same in DuckDB."""
    folder.mkdir(parents=True, exist_ok=True)
    sources, targets = [packet.source for packet in packets], [packet.target for packet in packets]
    columns = {"src_addr": sources, "dest_addr": targets, "length": pa.array([p.length for p in packets], pa.int32())}
    times = [packet.at for packet in packets]
    pq.write_table(pa.table({**columns, "ts": pa.array(times, pa.timestamp("us"))}), folder / "packets.parquet")
    owned = whois(packets)
    assert len(owned) >= 10_000
    write_csv(owned, folder / "whois.csv")
    database = duckdb.connect()
    database.register("p", pa.table({**columns, "us": times, "place": [key(source) for source in sources]}))
    database.execute("CREATE TABLE packets AS SELECT * FROM p")
    database.register("w", pa.table({
        "min_addr": [one.first for one in owned], "max_addr": [one.last for one in owned],
        "name": [one.name for one in owned],
        "low": [key(one.first) for one in owned], "high": [key(one.last) for one in owned],
    }))  # fmt: skip
    database.execute("CREATE TABLE networks AS SELECT * FROM w")
    return database


def ran(packets: list[Packet], folder: Path, elephant: int, joins: str = EARLY) -> Ran:
    """Run the three queries of data triage; `elephant` instead of the paper's thousand packets."""
    database = prepared(packets, folder)
    clauses = f"FROM 'parquet:{folder}/packets.parquet' WATERMARK ts DELAY '1 second'"
    text = statement("STREAM", "Packets", clauses) + statement("TABLE", "Whois", f"FROM 'csv:{folder}/whois.csv'")
    elephants = statement("QUERY", "triage_elephants")
    assert elephants.count(f"> {ELEPHANT}") == 2
    delay = statement("QUERY", "triage_delay")
    assert DELAY in delay
    text += statement("QUERY", "triage_berkeley") + elephants.replace(f"> {ELEPHANT}", f"> {elephant}")
    text += delay.replace(DELAY, "")
    rows = max(len(packets) // 7, 1)
    run = (
        App(master="process")
        .sql(text)
        .start(str(folder / "ckpt"), output=str(folder / "out"), batch_rows=rows, joins=joins)
    )
    run.await_end()
    return Ran(folder, database, run.summary())


# At an instant that is a multiple of 5 seconds, P holds the 5 seconds before it.
BERKELEY = """
SELECT i - 5000000, i, src_addr, dest_addr, length, us, min_addr, max_addr, name
FROM (SELECT DISTINCT (us // 5000000 + 1) * 5000000 AS i FROM packets) JOIN packets P ON us >= i - 5000000 AND us < i
  JOIN networks W ON P.place >= W.low AND P.place < W.high
WHERE regexp_full_match(name, '.*berkeley[.]edu')
"""
COUNTED = f"SELECT i, count(*) FROM ({BERKELEY}) AS b(s, i) GROUP BY ALL"
# At an instant that is a multiple of 10 seconds, P holds the 10 seconds before it; E what ended 10 seconds before, as
# its time is the end of its window: the elephants of the 10 seconds before those.
ELEPHANTS = """
WITH instants AS (SELECT DISTINCT (us // 10000000 + 1) * 10000000 AS i FROM packets),
  held AS (SELECT i, src_addr, dest_addr FROM instants JOIN packets ON us >= i - 10000000 AND us < i),
  elephants AS (SELECT i AS ended, src_addr, dest_addr FROM held GROUP BY ALL HAVING count(*) > {elephant})
SELECT held.i - 10000000, held.i, held.src_addr, held.dest_addr, count(*)
FROM held JOIN elephants E ON ended >= held.i - 10000000 AND ended < held.i
  AND held.src_addr = E.src_addr AND held.dest_addr = E.dest_addr
GROUP BY ALL HAVING count(*) > {elephant}
"""


def check(found: Ran, elephant: int) -> dict[str, int]:
    """That all results are those of DuckDB; how many rows each query has."""
    berkeley = found.expected(BERKELEY)
    columns = "src_addr, dest_addr, length, epoch_us(ts), min_addr, max_addr, name"
    assert found.results("triage_berkeley", columns) == berkeley
    elephants = found.expected(ELEPHANTS.format(elephant=elephant))
    assert found.results("triage_elephants", 'src_addr, dest_addr, "count(*)"') == elephants
    counted = Counter({(i - 5 * SECOND, i, n, i): 1 for i, n in found.database.sql(COUNTED).fetchall()})
    assert found.results("triage_delay", '"count(*)", epoch_us(ts)') == counted
    return {"berkeley": berkeley.total(), "elephants": elephants.total(), "delay": counted.total()}


@pytest.mark.parametrize("joins", [EARLY, pytest.param(LATE, marks=pytest.mark.slow)])
def test_triage_of_generated_packets(joins: str, tmp_path: Path) -> None:
    found = ran(list(traffic(25_000)), tmp_path, ELEPHANT, joins)
    rows = check(found, ELEPHANT)
    assert all(rows.values())
    keyed = found.database.sql("SELECT count(src_addr || dest_addr) FROM packets").fetchall()[0][0]
    assert 0 < keyed < 25_000
    sides = found.summary["queries"]["triage_elephants"]["accounting"]
    assert (sides["P"]["exact"], sides["P"]["filtered"]) == (keyed, 25_000 - keyed)


# A pair of addresses in these captures never has a thousand packets in ten seconds; this many it has, if any.
SMALLER = {
    "campus_dns_1min_2017.pcap": 100, "ddos_synflood_spoofed.pcap": 1, "ddos_dns_rrsig_fragmented.pcap": 100,
    "iot_sentinel_2016.pcap.xz": 100, "modbus_scada_2015.pcap.xz": 100,
}  # fmt: skip
QUICK = ("campus_dns_1min_2017.pcap",)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in SMALLER]
)
def test_triage_of_captures(name: str, tmp_path: Path) -> None:
    if not (CAPTURES / name).exists():
        pytest.skip(f"{name} is not in ../shared/data/packets beside the project")
    packets = list(captured(CAPTURES / name))
    found = ran(packets, tmp_path, SMALLER[name])
    rows = check(found, SMALLER[name])
    assert rows["berkeley"]
    assert rows["delay"]
    assert rows["elephants"] or "synflood" in name


# -- auctions


def written(kind: str, options: dict[str, str], folder: Path) -> None:
    source = open_generate(kind, options)
    with pq.ParquetWriter(folder / f"{kind}.parquet", source.schema()) as writer:
        for batch in source.read(whole(source), source.schema().names, 1 << 17):
            writer.write_batch(batch)


# At an instant that is a full minute, A holds all auctions before it, B the bids of the hour before it. The first
# auction is before them all.
AUCTIONS = """
WITH sold AS (
    SELECT epoch_us(A.ts) AS opened, A.auctionID AS auction
    FROM '{folder}/auctions.parquet' A JOIN '{folder}/persons.parquet' P ON A.sellerID = P.personID
    WHERE P.state = 'VT'
  ), bids AS (SELECT epoch_us(ts) AS us, auctionID FROM '{folder}/bids.parquet'),
  instants AS (
    SELECT unnest(range(min(us) // 60000000 * 60000000 + 60000000, max(us) + 3600000001, 60000000)) AS i FROM bids
  ), first AS (SELECT min(epoch_us(ts)) // 60000000 * 60000000 AS began FROM '{folder}/auctions.parquet')
SELECT least(i - 3600000000, began), i, auction, count(*)
FROM first, bids B JOIN sold A ON B.auctionID = A.auction
  JOIN instants ON opened < i AND us >= i - 3600000000 AND us < i
GROUP BY ALL
"""


def check_auctions(folder: Path, bids: int, rate: float, batch_rows: int, **settings: Any) -> None:
    for kind in ("persons", "auctions", "bids"):
        written(kind, {"rows": str(bids), "rate": str(rate), "seed": "11"}, folder)
    text = statement("STREAM", "Bid", f"FROM 'parquet:{folder}/bids.parquet' WATERMARK ts DELAY '1 second'")
    text += statement("STREAM", "Auction", f"FROM 'parquet:{folder}/auctions.parquet' WATERMARK ts DELAY '1 second'")
    text += statement("TABLE", "Person", f"FROM 'parquet:{folder}/persons.parquet'") + statement(
        "QUERY", "join_auction"
    )
    run = App(master="process").sql(text).start(
        str(folder / "ckpt"), output=str(folder / "out"), batch_rows=batch_rows, **settings
    )  # fmt: skip
    run.await_end()
    found = Ran(folder, duckdb.connect(), run.summary())
    expected = found.expected(AUCTIONS.format(folder=folder))
    assert found.results("join_auction", 'auctionID, "count(*)"') == expected
    assert len({row[1] for row in expected}) > 60
    assert max(row[3] for row in expected) > 5
    account = found.summary["queries"]["join_auction"]["accounting"]
    sellers = found.database.sql(
        f"SELECT count(*) FROM '{folder}/auctions.parquet' WHERE sellerID IN "
        f"(SELECT personID FROM '{folder}/persons.parquet' WHERE state = 'VT')"
    ).fetchall()[0][0]
    assert account["A"]["exact"] == sellers
    assert account["A"]["filtered"] == account["A"]["input"] - sellers
    assert account["B"]["exact"] == account["B"]["input"] == bids


@pytest.mark.parametrize("joins", [EARLY, LATE])
def test_auctions(joins: str, tmp_path: Path) -> None:
    check_auctions(tmp_path, 60_000, 8.0, 9_000, joins=joins)


@pytest.mark.slow
def test_auctions_of_five_million_bids(tmp_path: Path) -> None:
    check_auctions(tmp_path, 5_000_000, 250.0, 500_000)
