"""Turns times of pcapng, ticks of an interface's own unit, into microseconds since 1970."""

from __future__ import annotations

from numba import int64, uint64

from penstock.kernels.jit import part

NO_TIME = -(1 << 63)


@part
def halved(number, times):
    """Shifted right; by 64 bits and more too, which the machine's own shift does not know."""
    return number >> uint64(times) if times < 64 else uint64(0)


@part
def binary(ticks, exponent):
    """(seconds, microseconds) of `ticks` times 2 ** −exponent seconds."""
    whole = halved(ticks, exponent)
    rest = ticks & ((uint64(1) << uint64(exponent)) - uint64(1)) if exponent < 64 else ticks
    # A million times the rest, from its halves: together they may have 84 bits.
    low = (rest & uint64(0xFFFFFFFF)) * uint64(1_000_000)
    high = (rest >> uint64(32)) * uint64(1_000_000)
    if exponent < 32:
        return whole, low >> uint64(exponent)
    return whole, halved(high + (low >> uint64(32)), exponent - 32)


@part
def microseconds(ticks, unit, seconds):
    """Time of a number of ticks (unsigned) of an interface's unit, as pcapng codes that; NO_TIME beyond 64 bits."""
    exponent = unit & 127
    if unit & 128:
        whole, time = binary(ticks, exponent)
    else:
        scale = uint64(1)
        for _ in range(min(abs(exponent - 6), 19)):
            scale *= uint64(10)
        if exponent >= 6:
            whole, time = uint64(0), (ticks // scale if exponent <= 25 else uint64(0))
        else:
            whole, time = uint64(0), ticks
            if ticks > uint64((1 << 62) - 1) // scale:
                return int64(NO_TIME)
            time = ticks * scale
    if whole > uint64(1 << 42) or time > uint64((1 << 62) - 1) or seconds > 1 << 42 or seconds < -(1 << 42):
        return int64(NO_TIME)
    return int64(time) + (int64(whole) + seconds) * 1_000_000
