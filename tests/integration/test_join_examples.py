"""`examples/auction.sql` and `examples/whois.sql` as written, without Spark, against DuckDB and plain Python."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from ipaddress import IPv4Network, ip_address
from pathlib import Path
from typing import Any

import duckdb
import pytest

from penstock.sources.base import whole
from penstock.sources.registry import open_source
from support.networks import networks, write_csv

EXAMPLES = Path(__file__).parents[2] / "examples"
BIDS, PACKETS = 40_000, 30_000
MINUTE, HOUR = 60, 3600

# Per query its FROM, where the side of auctions begins in relation to the end of the window (None: anywhere), that of
# bids, the slide, and select list, condition and groups.
JOINED = "bids B, auctions A, persons P WHERE A.auctionID = B.auctionID AND A.sellerID = P.personID AND "
PAIRED = "bids B, auctions A WHERE A.auctionID = B.auctionID AND "
TWICE = (
    "bids B, auctions A, persons S, persons T "
    "WHERE A.auctionID = B.auctionID AND A.sellerID = S.personID AND B.bidderID = T.personID AND "
)
AUCTION = {
    "vermont": (JOINED + "P.state = 'VT'", None, HOUR, MINUTE, "A.auctionID", "count(*)", "true"),
    "hot": (
        PAIRED + "true", None, HOUR, 10 * MINUTE, "A.auctionID, startPrice", "count(*), avg(bidPrice), max(bidPrice)",
        "count(*) > 1000",
    ),
    "sellers": (
        JOINED + "true", HOUR, 10 * MINUTE, 10 * MINUTE, "sellerID, name, state", "count(*), max(bidPrice)",
        "count(*) > 100",
    ),
    "states": (
        JOINED + "true", None, 10 * MINUTE, 10 * MINUTE, "state", "count(*), avg(startPrice), avg(bidPrice)", "true",
    ),
    "trade": (TWICE + "true", None, HOUR, HOUR, "S.state, T.state", "count(*), sum(bidPrice)", "true"),
}  # fmt: skip


def penstock(*arguments: str, cwd: Path) -> str:
    command = (sys.executable, "-m", "penstock.app.cli", *arguments)
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{' '.join(arguments)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def run(example: str, folder: Path, **variables: str) -> dict[str, Any]:
    given = [part for name, value in variables.items() for part in ("--set", f"{name}={value}")]
    more = ("--master", "process", "--output", "out", "--batch-rows", "15000", "--json")
    summary: dict[str, Any] = json.loads(penstock("run", str(EXAMPLES / example), *given, *more, cwd=folder))
    return summary


def results(folder: Path, query: str) -> list[tuple[Any, ...]]:
    """The end of the window, in seconds, and the columns of the select list."""
    columns = "epoch(window_end)::BIGINT, * EXCLUDE (window_start, window_end)"
    return [rounded(row) for row in duckdb.sql(f"SELECT {columns} FROM '{folder}/out/{query}/*.parquet'").fetchall()]


def rounded(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(round(value, 6) if isinstance(value, float) else value for value in row)


# -- auctions


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A folder with more than two hours of an auction house, and the results of auction.sql in out/."""
    folder = tmp_path_factory.mktemp("auction")
    options = ("--rows", str(BIDS), "--option", "rate=5", "--option", "hot=0.8", "--quiet")
    penstock("generate", "auction", "-o", "house", *options, cwd=folder)
    return folder, run("auction.sql", folder, data="house")


@pytest.mark.parametrize("query", AUCTION)
def test_auctions_are_those_of_duckdb(query: str, house: tuple[Path, dict[str, Any]]) -> None:
    folder, summary = house
    source, opened, bid, slide, keys, values, having = AUCTION[query]
    for name in ("bids", "auctions", "persons"):
        source = source.replace(f"{name} ", f"'{folder}/house/{name}.parquet' ")
    day = "epoch(TIMESTAMPTZ '2026-01-01 00:00:00Z')"
    since = "" if opened is None else f"AND epoch(A.ts) >= e - {opened}"
    expected = duckdb.sql(
        f"SELECT e, {keys}, {values} FROM (SELECT {day} + unnest(range(0, 16000, {slide})) AS e) w, {source} "
        f"AND epoch(A.ts) < e {since} AND epoch(B.ts) < e AND epoch(B.ts) >= e - {bid} "
        f"GROUP BY e, {keys} HAVING {having}"
    ).fetchall()
    assert Counter(results(folder, query)) == Counter(map(rounded, expected))
    assert summary["queries"][query]["rows"] == len(expected) > 0


def test_bidders(house: tuple[Path, dict[str, Any]]) -> None:
    folder, summary = house
    expected = duckdb.sql(
        "SELECT epoch_us(ts) // 600000000 * 600 + 600, state, count(*), avg(bidPrice), count(DISTINCT bidderID) "
        f"FROM '{folder}/house/bids.parquet' JOIN '{folder}/house/persons.parquet' ON bidderID = personID GROUP BY ALL"
    ).fetchall()
    assert Counter(results(folder, "bidders")) == Counter(map(rounded, expected))
    assert summary["queries"]["bidders"]["accounting"]["exact"] == BIDS


def test_unwanted_auctions(house: tuple[Path, dict[str, Any]]) -> None:
    folder, summary = house
    expected = duckdb.sql(
        "SELECT e, state, count(*), avg(startPrice) "
        "FROM (SELECT epoch(TIMESTAMPTZ '2026-01-01 00:00:00Z') + unnest(range(0, 16000, 600)) AS e) w, "
        f"'{folder}/house/auctions.parquet' A, '{folder}/house/persons.parquet' "
        "WHERE sellerID = personID AND epoch(A.ts) < e AND epoch(A.ts) >= e - 3600 AND NOT EXISTS ("
        f"  SELECT 1 FROM '{folder}/house/bids.parquet' B WHERE B.auctionID = A.auctionID AND epoch(B.ts) < e) "
        "GROUP BY e, state"
    ).fetchall()
    assert Counter(results(folder, "unwanted")) == Counter(map(rounded, expected))
    assert summary["queries"]["unwanted"]["rows"] == len(expected) > 0
    accounts = summary["queries"]["unwanted"]["accounting"]
    assert accounts["B"]["exact"] == BIDS  # also those that no auction asks for


# -- networks


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """A folder with the results of whois.sql in out/; packets with the owners of their addresses."""
    folder = tmp_path_factory.mktemp("whois")
    penstock(
        "generate", "bursty", "-o", "t.pcap", "--rows", str(PACKETS), "--option", "rate=500", "--quiet", cwd=folder
    )
    owned = networks()
    write_csv(owned, folder / "whois.csv")
    run("whois.sql", folder, capture="t.pcap", whois="whois.csv")
    names = {one.network: one.name for one in owned}
    source = open_source(f"pcap:{folder}/t.pcap", {})
    columns = ["ts", "src", "dst", "dport", "proto", "ip_length"]
    packets = [row for batch in source.read(whole(source), columns, 10_000) for row in batch.to_pylist()]
    addresses = {_address(packet[side]) for packet in packets for side in ("src", "dst")}
    owners = {address: _owner(address, names) for address in addresses}
    for packet in packets:
        packet["from"], packet["to"] = (owners[_address(packet[side])] for side in ("src", "dst"))
        packet["second"] = int(packet["ts"].timestamp())
    return folder, packets


def _address(found: Any) -> int:
    return int(found["four"]) if isinstance(found, dict) else int(found)


def _owner(address: int, names: dict[Any, str]) -> str | None:
    """Of the longest prefix that is in the table."""
    prefixes = (IPv4Network((address >> drop << drop, 32 - drop)) for drop in range(33))
    return next((names[prefix] for prefix in prefixes if prefix in names), None)


def _ends(second: int, length: int, slide: int) -> list[int]:
    """The ends of the windows that hold a time."""
    first = second // slide * slide + slide
    return [end for end in range(first, second + length + 1, slide) if end - length <= second]


def test_senders(capture: tuple[Path, list[dict[str, Any]]]) -> None:
    folder, packets = capture
    count, size = Counter[tuple[int, str]](), Counter[tuple[int, str]]()
    for packet in packets:
        if packet["from"] is not None:
            for end in _ends(packet["second"], 10, 10):
                count[end, packet["from"]] += 1
                size[end, packet["from"]] += packet["ip_length"]
    expected = []
    for end in {end for end, _ in count}:
        rows = sorted((-size[key], key[1].encode(), count[key]) for key in count if key[0] == end)[:20]
        expected += [(end, name.decode(), many, -most) for most, name, many in rows]
    assert Counter(results(folder, "senders")) == Counter(expected)
    assert len(expected) > 50


def test_pairs(capture: tuple[Path, list[dict[str, Any]]]) -> None:
    folder, packets = capture
    count, size = Counter[Any](), Counter[Any]()
    for packet in packets:
        for end in _ends(packet["second"], 30, 10):
            count[end, packet["from"], packet["to"]] += 1
            size[end, packet["from"], packet["to"]] += packet["ip_length"]
    expected = [(*key, many, size[key]) for key, many in count.items() if many > 100]
    assert Counter(results(folder, "pairs")) == Counter(expected)
    assert any(None in row for row in expected)
    assert any(None not in row for row in expected)


def test_packets_of_one_owner(capture: tuple[Path, list[dict[str, Any]]]) -> None:
    folder, packets = capture
    owned = {one.network: one for one in networks()}
    found = Counter((name, low, high) for _, _, _, _, name, low, high in results(folder, "berkeley"))
    wanted: Counter[tuple[str, str, str]] = Counter()
    for packet in packets:
        if packet["from"] is not None and packet["from"].endswith("berkeley.edu"):
            around = (IPv4Network((_address(packet["src"]), length), strict=False) for length in range(32, -1, -1))
            one = owned[next(network for network in around if network in owned)]
            wanted[one.name, one.first, one.last] += 1
    assert found == wanted
    assert sum(wanted.values()) == len(results(folder, "berkeley"))


def test_networks_are_as_registries_have_them() -> None:
    """What the other tests ask of the table: many networks, inside each other, of both versions."""
    owned = networks()
    assert networks() == owned != networks(seed=8)
    known = {one.network for one in owned}
    assert len(known) == len(owned) == 12_000
    assert 1000 < sum(one.network.version == 6 for one in owned) < 5000
    lengths = range(8, 64)
    nested = [n for n in known if any(n.supernet(new_prefix=p) in known for p in lengths if p < n.prefixlen)]
    assert len(nested) > 6000
    assert 100 < sum(one.name.endswith("berkeley.edu") for one in owned) < 1000
    assert all(ip_address(one.first) <= ip_address(one.last) for one in owned)
