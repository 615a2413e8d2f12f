"""The dozen monitoring queries of the benchmark `packets`, as penstock's language and as peers spell them.

Each counts packets and adds up bytes per key and window. Bytes are those of the IP packet, as nfdump and pmacct
count them; only packet sizes go by the frame. What a peer cannot ask at all stands in no dialect of it; what it
answers more coarsely, or of fewer packets, is said by the `Scope` of its answer, and compared with the same of the
reference.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class PacketQuery:
    """Packets and bytes per `keys` and window; with `top`, the keys with most bytes only."""

    name: str
    seconds: int
    keys: tuple[str, ...]
    names: tuple[str, ...]  # of the keys in the result
    where: str = ""
    value: str = "ip_length"
    top: int = 0

    @property
    def select(self) -> str:
        named = [key if key == name else f"{key} AS {name}" for key, name in zip(self.keys, self.names, strict=True)]
        text = f"SELECT {', '.join(named)}, count(*) AS packets, sum({self.value}) AS bytes"
        text += f" FROM packets [RANGE '{self.seconds} seconds']"
        text += f" WHERE {self.where}" if self.where else ""
        text += f" GROUP BY {', '.join(self.keys)}"
        return text + (f" ORDER BY bytes DESC LIMIT {self.top}" if self.top else "")


def _query(name: str, seconds: int, *keys: str, where: str = "", value: str = "ip_length", top: int = 0) -> PacketQuery:
    names = tuple({"src/24": "net", "dst/16": "net", SIZE: "size"}.get(key, key) for key in keys)
    return PacketQuery(name, seconds, keys, names, where, value, top)


SIZE = "length - length % 64"  # classes of 64 bytes
OPENING = "proto = 6 AND tcp_flags % 64 = 2"  # SYN and nothing else, whatever is said of congestion
CENTURY = 36_525 * 86_400  # seconds: a window that holds any capture
CHOSEN = {
    "ip": "version IS NOT NULL",
    "ipv4": "version = 4",
    "ports": "version = 4 AND (proto = 6 OR proto = 17) AND sport IS NOT NULL",
}
QUERIES = (
    _query("protocols", 10, "proto"),
    _query("sizes", 10, SIZE, value="length"),
    _query("flags", 10, "tcp_flags", where="proto = 6"),
    _query("talkers", 60, "src", top=10),
    _query("targets", 60, "dst"),
    _query("scanned", 60, "dst", "dport", where=OPENING),
    _query("nets24", 60, "src/24"),
    _query("nets16", 300, "dst/16"),
    _query("pairs", 60, "src", "dst"),
    _query("services", 300, "proto", "dport"),
    _query("tuples", 60, "src", "dst", "sport", "dport"),
    _query("flows", 300, "src", "dst", "sport", "dport", "proto"),
)


def app_text(file: str) -> str:
    """All queries as one app over a capture; a packet's time may lie a second behind the latest."""
    stream = f"CREATE STREAM packets FROM 'pcap:{file}' WATERMARK ts DELAY '1 second';"
    return "\n".join([stream, *(f"CREATE QUERY {query.name} AS {query.select};" for query in QUERIES)])


def whole_text(file: str) -> str:
    """What nfdump is asked (`NFDUMP`), as one app: of the whole capture, of the packets that it looks at."""
    asked = [
        f"CREATE QUERY {query.name} AS {replace(query, seconds=CENTURY, where=CHOSEN[scope.packets], top=0).select};"
        for query in QUERIES
        if query.name in NFDUMP
        for scope in [NFDUMP[query.name].scope]
    ]
    return "\n".join([f"CREATE STREAM packets FROM 'pcap:{file}';", *asked])


@dataclass(frozen=True)
class PacketScope:
    """What part of a query an answer covers: which packets, and windows of how many seconds (0: the whole capture).

    `packets` is `all`, `ip`, `ipv4`, `transport` (packets of TCP and UDP that have ports), or `ports` (those of IPv4).
    """

    packets: str = "all"
    seconds: int | None = None  # None: the query's own, with its order and limit
    bytes: bool = True  # False: packets only; the reference then gives them twice


@dataclass(frozen=True)
class Dialect:
    """How a peer is asked: its aggregation and filter, the fields it prints, and what that covers."""

    aggregate: str
    scope: PacketScope
    filter: str = ""
    fields: str = ""


# nfpcapd makes flows that last over windows, so all is of the whole capture. It does not go beyond an IPv6 packet's
# first header (protocol 0 for multicast reports), its prefixes are of one version at a time, and it prints :: as
# 0.0.0.0.
PORTS = "ipv4 and (proto tcp or proto udp)"
NFDUMP = {
    "protocols": Dialect("proto", PacketScope("ipv4", 0), "ipv4", "%pr"),
    "talkers": Dialect("srcip", PacketScope("ipv4", 0), "ipv4", "%sa"),
    "targets": Dialect("dstip", PacketScope("ip", 0), "", "%da"),
    "nets24": Dialect("srcip4/24", PacketScope("ipv4", 0), "ipv4", "%sa"),
    "nets16": Dialect("dstip4/16", PacketScope("ipv4", 0), "ipv4", "%da"),
    "pairs": Dialect("srcip,dstip", PacketScope("ip", 0), "", "%sa,%da"),
    "services": Dialect("proto,dstport", PacketScope("ports", 0), PORTS, "%pr,%dp"),
    "tuples": Dialect("srcip,dstip,srcport,dstport", PacketScope("ports", 0), PORTS, "%sa,%da,%sp,%dp"),
    "flows": Dialect("srcip,dstip,srcport,dstport,proto", PacketScope("ports", 0), PORTS, "%sa,%da,%sp,%dp,%pr"),
}
# pmacct keeps tables per minute at the finest, but reading a file it puts packets near the edge of a minute into
# the wrong one, so the minutes are added up. Filters of a table are not applied to files, and flags of a key's
# packets are put together: it cannot count by flags.
PMACCT = {
    "protocols": Dialect("proto", PacketScope("ip", 0)),
    "talkers": Dialect("src_host", PacketScope("ip", 0)),
    "targets": Dialect("dst_host", PacketScope("ip", 0)),
    "nets24": Dialect("src_net, src_mask", PacketScope("ipv4", 0)),
    "nets16": Dialect("dst_net, dst_mask", PacketScope("ipv4", 0)),
    "pairs": Dialect("src_host, dst_host", PacketScope("ip", 0)),
    "services": Dialect("proto, dst_port", PacketScope("transport", 0)),
    "tuples": Dialect("src_host, dst_host, src_port, dst_port", PacketScope("transport", 0)),
    "flows": Dialect("src_host, dst_host, src_port, dst_port, proto", PacketScope("transport", 0)),
}
# tshark's own statistics: packets that an IPv4 address has sent; its bytes are those of frames.
STATISTICS = {"talkers": Dialect("endpoints,ip", PacketScope("ipv4", 0, bytes=False))}
