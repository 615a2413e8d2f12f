"""Which rows of a table cover which elementary intervals. A row covers those in [begin, end), in sorted order."""

from __future__ import annotations

from numba import int64, types

from penstock.kernels.jit import I64, U8, kernel, part, ro, rw


@kernel(types.void, ro(I64), ro(I64), rw(I64), rw(I64))
def list_covers(begin, end, place, rows):
    """List the rows of each interval, ascending; place[k] is where the next row of interval k goes."""
    for row in range(begin.shape[0]):
        for interval in range(begin[row], end[row]):
            rows[place[interval]] = row
            place[interval] += 1


@part
def next_bare(following, interval):
    """The first interval from this one on that no shorter row covers."""
    while following[interval] != interval:
        following[interval] = following[following[interval]]
        interval = following[interval]
    return interval


@kernel(I64, ro(I64), ro(I64), ro(I64), ro(I64), I64, rw(I64), rw(U8), rw(I64), rw(I64), rw(I64))
def cover_shortest(order, lengths, begin, end, limit, following, fresh, painted, place, rows):
    """Of each interval the shortest rows that cover it; the number of all these, or −1 beyond the limit.

    Rows come by length (`order`), rows of one length together, ascending; an interval belongs to the rows of the first
    length that reaches it. place[k] is increased for each row of interval k; where there is room in `rows`, the row is
    put there before. `following` leads from an interval to the next one that is bare, one beyond all at last.
    """
    total, first = int64(0), int64(0)
    while first < order.shape[0]:
        last, count = first, int64(0)
        while last < order.shape[0] and lengths[order[last]] == lengths[order[first]]:
            row = order[last]
            interval = next_bare(following, begin[row])
            while interval < end[row]:
                if rows.shape[0]:
                    rows[place[interval]] = row
                place[interval] += 1
                if not fresh[interval]:
                    fresh[interval] = 1
                    painted[count] = interval
                    count += 1
                total += 1
                interval = next_bare(following, interval + int64(1))
            last += 1
            if total > limit:
                return int64(-1)
        for at in range(count):
            following[painted[at]] = painted[at] + int64(1)
        first = last
    return total
