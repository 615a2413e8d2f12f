"""Packets of every kind that the decoder knows, built by scapy: what tests of captures share.

A sample says what must be found in it: columns without unwrapping, and where they differ with all tunnels unwrapped.
Columns that are not said are NULL, but for lengths and what belongs to the record.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from scapy.config import conf

conf.ipv6_enabled = False  # else scapy asks the machine for its routes
from scapy.contrib.mpls import MPLS  # noqa: E402
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption  # noqa: E402
from scapy.layers.inet6 import (  # noqa: E402
    ICMPv6EchoRequest,
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
)
from scapy.layers.l2 import ARP, GRE, LLC, SNAP, CookedLinux, Dot1AD, Dot1Q, Dot3, Ether  # noqa: E402
from scapy.layers.ppp import HDLC, PPP, PPPoE  # noqa: E402
from scapy.layers.sctp import SCTP  # noqa: E402
from scapy.layers.vxlan import VXLAN  # noqa: E402
from scapy.packet import Packet, Raw  # noqa: E402

Columns = dict[str, Any]


class Sample(NamedTuple):
    link: int
    data: bytes
    plain: Columns
    inner: Columns | None = None


# Lower layers, and what they say.
STATIONS: Columns = {"src_mac": "02:00:00:00:00:01", "dst_mac": "02:00:00:00:00:02"}
ETHER = Ether(src=STATIONS["src_mac"], dst=STATIONS["dst_mac"])
FOUR = {
    "version": 4,
    "src": "10.0.0.1",
    "dst": "192.168.1.2",
    "ttl": 61,
    "tos": 0x28,
    "ip_id": 0x1234,
    "fragment": False,
}
SIX = {"version": 6, "src": "2001:db8::1", "dst": "2001:db8::2", "ttl": 62, "tos": 0xA5, "fragment": False}
OUTER = {"version": 4, "src": "172.16.0.1", "dst": "172.16.0.2", "ttl": 9, "tos": 0, "ip_id": 7, "fragment": False}
OUTER_SIX = {"version": 6, "src": "fd00::a", "dst": "fd00::b", "ttl": 8, "tos": 0, "fragment": False}
AROUND = {"outer_src": OUTER["src"], "outer_dst": OUTER["dst"], "tunnel": 1}
AROUND_SIX = {"outer_src": OUTER_SIX["src"], "outer_dst": OUTER_SIX["dst"], "tunnel": 1}


def four(**more: Any) -> Packet:
    return IP(src=FOUR["src"], dst=FOUR["dst"], ttl=61, tos=0x28, id=0x1234, **more)


def six(**more: Any) -> Packet:
    return IPv6(src=SIX["src"], dst=SIX["dst"], hlim=62, tc=0xA5, fl=0x12345, **more)


def outer(**more: Any) -> Packet:
    return IP(src=OUTER["src"], dst=OUTER["dst"], ttl=9, id=7, **more)


def outer_six(**more: Any) -> Packet:
    return IPv6(src=OUTER_SIX["src"], dst=OUTER_SIX["dst"], hlim=8, **more)


PORTS = {"sport": 4660, "dport": 80}
TCP_SAYS = {
    "proto": 6, **PORTS, "tcp_flags": 0x12, "seq": 0xFEDCBA98, "ack": 0x01020304, "tcp_window": 0xABCD, "payload": 9,
}  # fmt: skip
SEGMENT = TCP(**PORTS, flags="SA", seq=0xFEDCBA98, ack=0x01020304, window=0xABCD, options=[("MSS", 1460)]) / Raw(
    b"x" * 9
)
DATAGRAM = UDP(**PORTS) / Raw(b"y" * 5)
UDP_SAYS = {"proto": 17, **PORTS, "payload": 5}
TYPE_FOUR, TYPE_SIX = {"ethertype": 0x0800}, {"ethertype": 0x86DD}
AUTHENTICATION = bytes([6, 4]) + bytes(22)  # 24 bytes, then TCP


def _links() -> dict[str, Sample]:
    """One IP packet in every kind of frame."""
    tcp4, udp6 = {**FOUR, **TCP_SAYS, **TYPE_FOUR}, {**SIX, **UDP_SAYS, **TYPE_SIX}
    inside4, inside6 = four() / SEGMENT, six() / DATAGRAM
    raw4, raw6 = bytes(inside4), bytes(inside6)
    tags = {**tcp4, **STATIONS, "vlan": 100}
    labels = MPLS(label=0xABCDE, s=0, ttl=3) / MPLS(label=17, s=1, ttl=3)
    snap = LLC(dsap=0xAA, ssap=0xAA, ctrl=3) / SNAP(OUI=0, code=0x0800)
    cooked2 = bytes([0x08, 0, 0, 0, 0, 0, 0, 3, 0, 1, 0, 6]) + bytes(8)
    frames: dict[str, tuple[int, Any, Columns]] = {
        "ethernet": (1, ETHER / inside4, {**tcp4, **STATIONS}),
        "ethernet six": (1, ETHER / inside6, {**udp6, **STATIONS}),
        "padded": (1, ETHER / four() / UDP(**PORTS) / Raw(b"") / Raw(b""), {**FOUR, **UDP_SAYS, **TYPE_FOUR, **STATIONS,
                                                                         "payload": 0}),
        "vlan": (1, ETHER / Dot1Q(vlan=100, prio=5) / inside4, tags),
        "qinq": (1, ETHER / Dot1AD(vlan=100) / Dot1Q(vlan=200) / inside4, {**tags, "inner_vlan": 200}),
        "three tags": (1, ETHER / Dot1AD(vlan=100) / Dot1Q(vlan=200) / Dot1Q(vlan=300) / inside4,
                       {**tags, "inner_vlan": 200}),
        "mpls": (1, ETHER / labels / inside4, {**tcp4, **STATIONS, "mpls": 0xABCDE}),
        "mpls six": (1, Ether(bytes(ETHER / MPLS(label=5, s=1))) / inside6, {**udp6, **STATIONS, "mpls": 5}),
        "pppoe": (1, ETHER / PPPoE(sessionid=9) / PPP(proto=0x57) / inside6, {**udp6, **STATIONS}),
        "snap": (1, Dot3(src=STATIONS["src_mac"], dst=STATIONS["dst_mac"]) / snap / inside4, {**tcp4, **STATIONS}),
        "llc": (1, Dot3(src=STATIONS["src_mac"], dst=STATIONS["dst_mac"]) / LLC(dsap=6, ssap=6, ctrl=3) / inside4,
                {**tcp4, **STATIONS}),
        "spanning tree": (1, Dot3(src=STATIONS["src_mac"], dst=STATIONS["dst_mac"]) / LLC(dsap=66, ssap=66, ctrl=3)
                          / Raw(bytes(35)), STATIONS),
        "arp": (1, ETHER / ARP(), {"ethertype": 0x0806, **STATIONS}),
        "cooked": (113, CookedLinux(proto=0x86DD) / inside6, udp6),
        "cooked 2": (276, cooked2 + raw4, tcp4),
        "cooked 2 six": (276, b"\x86\xdd" + cooked2[2:] + raw6, udp6),
        "raw": (101, raw4, tcp4),
        "raw six": (12, raw6, udp6),
        "raw four only": (228, raw4, tcp4),
        "raw six only": (229, raw6, udp6),
        "loopback little": (0, b"\2\0\0\0" + raw4, tcp4),
        "loopback big": (0, b"\0\0\0\x1e" + raw6, udp6),
        "loop": (108, b"\0\0\0\2" + raw4, tcp4),
        "ppp": (9, HDLC() / PPP(proto=0x21) / inside4, tcp4),
        "ppp short": (9, b"\x21" + raw4, tcp4),
        "ppp direction": (204, b"\0\xff\3\0\x57" + raw6, udp6),
        "ppp labels": (9, b"\xff\3\x02\x81" + bytes(MPLS(label=3, s=1)) + raw4, {**tcp4, "mpls": 3}),
        "pppoe alone": (51, bytes(PPPoE(sessionid=9) / PPP(proto=0x21) / inside4), tcp4),
        "cisco": (104, b"\x0f\0\x08\0" + raw4, tcp4),
        "labels alone": (219, bytes(labels) + raw4, {**tcp4, "mpls": 0xABCDE}),
    }  # fmt: skip
    return {name: Sample(link, bytes(data), says) for name, (link, data, says) in frames.items()}


def _networks() -> dict[str, Sample]:
    """IP headers, extension headers, fragments and transport headers."""
    say4, say6 = {**FOUR, **TYPE_FOUR}, {**SIX, **TYPE_SIX}
    part = IPv6ExtHdrFragment
    later4, later6 = {**say4, "fragment": True, "frag_offset": 64}, {**say6, "fragment": True, "frag_offset": 64}
    chain = IPv6ExtHdrHopByHop() / IPv6ExtHdrRouting(addresses=["::1"]) / IPv6ExtHdrDestOpt()
    authenticated = bytes(four(proto=51) / Raw(AUTHENTICATION + bytes(SEGMENT)))
    packets: dict[str, tuple[Any, Columns]] = {
        "options": (four(options=[IPOption(b"\x83\x07\x04\x0a\0\0\1\0")]) / SEGMENT, {**say4, **TCP_SAYS}),
        "udp": (four() / DATAGRAM, {**say4, **UDP_SAYS}),
        "sctp": (four() / SCTP(**PORTS) / Raw(bytes(20)), {**say4, "proto": 132, **PORTS, "payload": 20}),
        "icmp": (four() / ICMP(type=3, code=13) / Raw(b"z" * 8),
                 {**say4, "proto": 1, "icmp_type": 3, "icmp_code": 13, "payload": 12}),
        "icmp six": (six() / ICMPv6EchoRequest(data=b"abcd"),
                     {**say6, "proto": 58, "icmp_type": 128, "icmp_code": 0, "payload": 8}),
        "ospf": (four(proto=89) / Raw(bytes(30)), {**say4, "proto": 89}),
        "esp": (four(proto=50) / Raw(bytes(30)), {**say4, "proto": 50}),
        "authentication": (authenticated, {**say4, **TCP_SAYS}),
        "hop by hop": (six() / IPv6ExtHdrHopByHop() / DATAGRAM, {**say6, **UDP_SAYS}),
        "routing": (six() / IPv6ExtHdrRouting(addresses=["::1", "::2"]) / DATAGRAM, {**say6, **UDP_SAYS}),
        "destination": (six() / IPv6ExtHdrDestOpt() / DATAGRAM, {**say6, **UDP_SAYS}),
        "authentication six": (six(nh=51) / Raw(AUTHENTICATION + bytes(SEGMENT)), {**say6, **TCP_SAYS}),
        "mobility": (six(nh=135) / Raw(bytes([17, 0]) + bytes(6) + bytes(DATAGRAM)), {**say6, **UDP_SAYS}),
        "identity": (six(nh=139) / Raw(bytes([17, 1]) + bytes(14) + bytes(DATAGRAM)), {**say6, **UDP_SAYS}),
        "shim": (six(nh=140) / Raw(bytes([17, 0]) + bytes(6) + bytes(DATAGRAM)), {**say6, **UDP_SAYS}),
        "chain": (six() / chain / SEGMENT, {**say6, **TCP_SAYS}),
        "no next header": (six(nh=59), {**say6, "proto": 59}),
        "first fragment": (four(flags="MF") / SEGMENT, {**say4, **TCP_SAYS, "fragment": True, "frag_offset": 0}),
        "later fragment": (four(frag=8, proto=17) / Raw(bytes(40)), {**later4, "proto": 17}),
        "first fragment six": (six() / part(nh=6, offset=0, m=1) / SEGMENT,
                               {**say6, **TCP_SAYS, "fragment": True, "frag_offset": 0}),
        "later fragment six": (six() / part(nh=17, offset=8, m=0) / Raw(bytes(40)), {**later6, "proto": 17}),
        "atomic fragment": (six() / part(nh=17, offset=0, m=0) / DATAGRAM, {**say6, **UDP_SAYS}),
        "chained fragment": (six() / IPv6ExtHdrHopByHop() / part(nh=6, m=1) / SEGMENT,
                             {**say6, **TCP_SAYS, "fragment": True, "frag_offset": 0}),
    }  # fmt: skip
    return {name: Sample(1, bytes(ETHER) [:12] + _type(data) + bytes(data), {**says, **STATIONS})
            for name, (data, says) in packets.items()}  # fmt: skip


def _type(data: Any) -> bytes:
    return b"\x86\xdd" if bytes(data)[0] >> 4 == 6 else b"\x08\x00"


def _tunnels() -> dict[str, Sample]:
    """Outer packets, and what is inside."""
    inner4, inner6 = {**FOUR, **TCP_SAYS, **TYPE_FOUR}, {**SIX, **UDP_SAYS, **TYPE_SIX}
    in4, in6 = four() / SEGMENT, six() / DATAGRAM
    say4, say6 = {**OUTER, **TYPE_FOUR}, {**OUTER_SIX, **TYPE_SIX}
    frame = ETHER / Dot1Q(vlan=7) / in4
    carried = {"proto": 17, "sport": 9999, "dport": 4789, "payload": len(frame) + 8}
    vxlan = outer() / UDP(sport=9999, dport=4789) / VXLAN(vni=5, flags=8)
    twice = {**inner4, **AROUND, "tunnel": 2}
    many = outer()
    for _ in range(11):
        many /= outer()
    packets: dict[str, tuple[Any, Columns, Columns]] = {
        "gre": (outer() / GRE() / in4, {**say4, "proto": 47}, {**inner4, **AROUND}),
        "gre six": (outer() / GRE() / in6, {**say4, "proto": 47}, {**inner6, **AROUND}),
        "gre full": (outer() / GRE(chksum_present=1, key_present=1, seqnum_present=1, key=1, sequence_number=2) / in4,
                     {**say4, "proto": 47}, {**inner4, **AROUND}),
        "gre key": (outer() / GRE(key_present=1, key=1) / in6, {**say4, "proto": 47}, {**inner6, **AROUND}),
        "gre bridged": (outer() / GRE(proto=0x6558) / ETHER / in4, {**say4, "proto": 47}, {**inner4, **AROUND}),
        "gre labels": (outer() / GRE(proto=0x8847) / MPLS(label=99, s=1) / in4, {**say4, "proto": 47},
                       {**inner4, **AROUND, "mpls": 99}),
        "gre in six": (outer_six() / GRE() / in4, {**say6, "proto": 47}, {**inner4, **AROUND_SIX}),
        "gre other": (outer() / GRE(proto=0x1234) / Raw(bytes(30)), {**say4, "proto": 47}, {**say4, "proto": 47}),
        "gre ppp": (outer(proto=47) / Raw(b"\x30\x81\x88\x0b" + bytes(12) + b"\xff\3\0\x21" + bytes(in4)),
                    {**say4, "proto": 47}, {**inner4, **AROUND}),
        "ip in ip": (outer() / in4, {**say4, "proto": 4}, {**inner4, **AROUND}),
        "six in four": (outer() / in6, {**say4, "proto": 41}, {**inner6, **AROUND}),
        "four in six": (outer_six() / in4, {**say6, "proto": 4}, {**inner4, **AROUND_SIX}),
        "six in six": (outer_six() / in6, {**say6, "proto": 41}, {**inner6, **AROUND_SIX}),
        "vxlan": (vxlan / frame, {**say4, **carried}, {**inner4, **AROUND, "vlan": 7}),
        "vxlan port only": (outer() / UDP(sport=9999, dport=4789) / Raw(bytes(40)), {**say4, **carried, "payload": 40},
                            {**say4, **carried, "payload": 40}),
        "nested": (outer() / GRE() / six() / in4, {**say4, "proto": 47}, twice),
        "fragment of a tunnel": (outer(flags="MF", proto=4) / in4, {**say4, "proto": 4, "fragment": True,
                                                                    "frag_offset": 0},
                                 {**say4, "proto": 4, "fragment": True, "frag_offset": 0}),
        "too deep": (many / in4, {**say4, "proto": 4}, {**say4, "proto": 4, **AROUND, "tunnel": 8}),
    }  # fmt: skip
    return {
        name: Sample(1, bytes(ETHER)[:12] + _type(data) + bytes(data), {**plain, **STATIONS}, {**inner, **STATIONS})
        for name, (data, plain, inner) in packets.items()
    }


SAMPLES: dict[str, Sample] = {**_links(), **_networks(), **_tunnels()}
