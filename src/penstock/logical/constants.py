"""Constants of an app's text to values: numbers, times and addresses, checked where they are written."""

from __future__ import annotations

import ipaddress
import math
from datetime import UTC, datetime, timedelta

from penstock.logical.expressions import Literal
from penstock.logical.types import BIGINT, DOUBLE, INET, INT, TIMESTAMP

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class BadConstant(ValueError):
    """A sentence for the user; the caller knows the place."""


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
        raise BadConstant(f"'{text}' is not a timestamp") from None
    try:
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        raise BadConstant(f"'{text}' is not a timestamp") from None
    return Literal((moment - _EPOCH) // timedelta(microseconds=1), TIMESTAMP)


def address(text: str) -> Literal:
    """One IPv4 or IPv6 address as canonical text; an IPv4-mapped address stays IPv6.

    >>> address("2001:DB8:0:0::1").value, address("::ffff:10.0.0.1").value
    ('2001:db8::1', '::ffff:10.0.0.1')
    """
    try:
        parsed = ipaddress.ip_address(text.strip())
    except ValueError:
        raise BadConstant(f"'{text}' is not an IP address") from None
    if isinstance(parsed, ipaddress.IPv4Address):
        return Literal(str(parsed), INET)
    if parsed.scope_id is not None:
        raise BadConstant(f"'{text}' has a zone, which INET does not store")
    # Python before 3.13 prints the mapped address in hexadecimal; RFC 5952 section 5 asks for the dotted quad.
    return Literal(f"::ffff:{parsed.ipv4_mapped}" if parsed.ipv4_mapped else str(parsed), INET)
