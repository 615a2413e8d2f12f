"""IP addresses for the oracle: parsed and printed by Python's `ipaddress`, ordered by a text code.

The code of an address sorts as the address does, so DuckDB can compare, group, `min` and `max` plain text:
"4" and 8 hex digits, or "6" and 32 hex digits.  A prefix is the code of its first address, "/" and its length.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

IPV4_BITS, IPV6_BITS = 32, 128


def code_of_text(text: str) -> str | None:
    """The code of a printed address; None where the text is no address (a zone such as %eth0 is not one).

    >>> code_of_text("10.0.0.1"), code_of_text("nonsense")
    ('40a000001', None)
    """
    if "%" in text:
        return None
    try:
        return _code(ip_address(text))
    except ValueError:
        return None


def code_of_number(number: int) -> str | None:
    """The code of an IPv4 address stored as an integer; None outside 0 .. 2^32 - 1."""
    return _code(IPv4Address(number)) if 0 <= number < 1 << IPV4_BITS else None


def prefix_code(code: str, length: int) -> str:
    """The first `length` bits of an address; of an IPv4 address never more than its 32.

    >>> print_code(prefix_code(code_of_text("2001:db8::1"), 24))
    '2001:d00::/24'
    """
    address = _address(code)
    kept = min(length, address.max_prefixlen)
    dropped = address.max_prefixlen - kept
    first = type(address)(int(address) >> dropped << dropped)
    return f"{_code(first)}/{kept:03d}"


def code_of_prefix_text(text: str) -> str | None:
    """The code of a printed prefix such as 10.0.0.0/24."""
    address, slash, length = text.partition("/")
    code = code_of_text(address)
    return prefix_code(code, int(length)) if code and slash and length.isdecimal() else None


def print_code(code: str) -> str:
    """Address or prefix as users see it: dotted quad, or RFC 5952 (Section 5: mapped IPv4 in dotted form)."""
    address, slash, length = code.partition("/")
    printed = _print(_address(address))
    return f"{printed}/{int(length)}" if slash else printed


def _code(address: IPv4Address | IPv6Address) -> str:
    return f"{address.version}{int(address):0{address.max_prefixlen // 4}x}"


def _address(code: str) -> IPv4Address | IPv6Address:
    number = int(code[1:], 16)
    return IPv4Address(number) if code[0] == "4" else IPv6Address(number)


def _print(address: IPv4Address | IPv6Address) -> str:
    # Python 3.13 prints mapped addresses so by itself, 3.11 and 3.12 print ::ffff:102:304.
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return f"::ffff:{address.ipv4_mapped}"
    return str(address)
