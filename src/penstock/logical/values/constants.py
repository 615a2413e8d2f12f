"""Constants of an app's text to values: numbers, times, addresses and prefixes, checked where they are written."""

from __future__ import annotations

import ipaddress
import math
from datetime import UTC, datetime, timedelta

from penstock.logical.expressions import Literal
from penstock.logical.types import BIGINT, DOUBLE, INET, INT, PREFIX, TIMESTAMP

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
IPV4_BITS, IPV6_BITS = 32, 128
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class BadConstant(ValueError):
    """A sentence for the user and perhaps a hint; the caller knows the place."""

    def __init__(self, fact: str, hint: str = "") -> None:
        super().__init__(fact)
        self.hint = hint


def number(text: str) -> Literal:
    """An integer constant is INT or BIGINT, anything with a point or an exponent is DOUBLE."""
    value = whole(text)
    if value is not None:
        # One more than the greatest is let through: it may stand after a minus sign.
        if value > 2**63:
            raise BadConstant("the number does not fit BIGINT")
        return integer(value)
    try:
        real = float(text)
    except ValueError:
        raise BadConstant(f"'{text}' is not a number") from None
    if not math.isfinite(real):
        raise BadConstant("the number does not fit DOUBLE")
    return Literal(real, DOUBLE)


def whole(text: str) -> int | None:
    """The value of plain digits, None for any other text; what BIGINT cannot hold anyway comes out as 2**64."""
    # str.isdigit alone takes superscripts and other scripts' digits; int() refuses thousands of digits.
    if not (text.isascii() and text.isdigit()):
        return None
    return int(text) if len(text.lstrip("0")) <= 19 else 2**64


def integer(value: int) -> Literal:
    return Literal(value, INT if -(2**31) <= value < 2**31 else BIGINT)


def timestamp(text: str) -> Literal:
    """ISO 8601 text, in UTC unless it says otherwise, as microseconds since 1970."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise BadConstant(f"'{text}' is not a timestamp", "write it like '2024-05-06 07:08:09'") from None
    try:
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        raise BadConstant(f"'{text}' is not a timestamp", "write it like '2024-05-06 07:08:09'") from None
    return Literal((moment - _EPOCH) // timedelta(microseconds=1), TIMESTAMP)


def address(text: str) -> Literal:
    """One IPv4 or IPv6 address as canonical text; an IPv4-mapped address stays IPv6.

    >>> address("2001:DB8:0:0::1").value, address("::ffff:10.0.0.1").value
    ('2001:db8::1', '::ffff:10.0.0.1')
    """
    try:
        parsed = ipaddress.ip_address(text.strip())
    except ValueError:
        raise BadConstant(f"'{text}' is not an IP address", _prefix_hint(text)) from None
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.scope_id is not None:
        raise BadConstant(f"'{text}' has a zone, which INET does not store")
    return Literal(_printed(parsed), INET)


def prefix(text: str, length: int) -> Literal:
    """A prefix such as 10.1.0.0/16 as canonical text; it must have `length` bits, IPv4 at most its 32.

    >>> prefix("2001:DB8::/32", 32).value, prefix("10.0.0.1/32", 64).value
    ('2001:db8::/32', '10.0.0.1/32')
    """
    written, slash, _ = text.strip().partition("/")
    try:
        network: _Network = ipaddress.ip_network(text.strip(), strict=False)
    except ValueError:
        raise BadConstant(f"'{text}' is not a prefix", f"write it like {_example(text, length)}") from None
    if not slash:
        raise BadConstant(f"'{text}' is an address, not a prefix", f"write {_shown(network, length)}")
    wanted = min(length, network.max_prefixlen)
    if network.prefixlen != wanted:
        fact = f"'{text}' has {network.prefixlen} bits and never equals a prefix of {wanted}"
        raise BadConstant(fact, f"compare with /{network.prefixlen}, or write {_shown(network, length)}")
    if ipaddress.ip_address(written) != network.network_address:
        fact = f"'{text}' has bits set beyond its length of {wanted}"
        raise BadConstant(fact, f"write {_shown(network, length)}")
    return Literal(f"{_printed(network.network_address)}/{wanted}", PREFIX)


def _printed(parsed: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    # Python before 3.13 prints the mapped address in hexadecimal; RFC 5952 section 5 asks for the dotted quad.
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped:
        return f"::ffff:{parsed.ipv4_mapped}"
    return str(parsed)


def _shown(network: _Network, length: int) -> str:
    """The prefix of `length` bits that was probably meant."""
    wanted = min(length, network.max_prefixlen)
    near = ipaddress.ip_network((network.network_address, wanted), strict=False)
    return f"'{_printed(near.network_address)}/{wanted}'"


def _example(text: str, length: int) -> str:
    return f"'2001:db8::/{length}'" if ":" in text or length > IPV4_BITS else f"'10.0.0.0/{length}'"


def _prefix_hint(text: str) -> str:
    try:
        network = ipaddress.ip_network(text.strip(), strict=False)
    except ValueError:
        return "write it like '10.0.0.1' or '2001:db8::1'"
    return f"to test a prefix, write column/{network.prefixlen} = {_shown(network, network.prefixlen)}"
