"""Roll-ups without hashing: codes of columns, rows in order of one of them, groups by the latest one that was stamped.

Rows are brought in order by window and one attribute, the *lead*: once for all queries that group by it. Rows of a
*cell* then have the window and the lead in common, and differ in the rest of their key. An array over the rest's codes
holds the latest group that each code has had: if that is older than the cell, the row begins a group. Where the codes
of a whole key are few, an array has a place for each.
"""

from __future__ import annotations

from numba import int32, int64, types, uint64

from penstock.kernels.hashing import mix
from penstock.kernels.jit import I32, I64, U8, U16, U32, kernel, kernel_for, ro, rw, together
from penstock.kernels.prefetch import prefetch

CODES = (U8, U16, I32)  # codes take as few bytes as they need: they are read out of order
AHEAD = 12  # rows between asking for an entry of a table and reading it
TOGETHER = 3  # columns that are added up in one loop: their number is known when it is compiled, which halves its time
COLUMNS = range(1, TOGETHER + 1)


@kernel_for(*((I64, ro(I64), I64, rw(I32), rw(I64), rw(kind)) for kind in CODES))
def rank_values(values, low, table, found, codes):
    """Codes in the order of the values, which lie within the table, all zero, from `low` on; `found` has the values."""
    for i in range(values.shape[0]):
        table[values[i] - low] = 1
    count = int64(0)
    for x in range(table.shape[0]):
        if table[x] != 0:
            found[count] = x + low
            table[x] = count
            count += 1
    for i in range(values.shape[0]):
        codes[i] = table[values[i] - low]
    return count


@kernel(I64, ro(I64), rw(U32), rw(I64), rw(I32))
def code_values(values, table, found, codes):
    """Codes in the order in which values come; −1 if there are more than `found` has room for. The table is all zero,
    and at least half of it stays so."""
    last, count, rows = uint64(table.shape[0] - 1), int64(0), values.shape[0]
    for i in range(rows):
        if i + AHEAD < rows:
            prefetch(table, int64(mix(uint64(values[i + AHEAD])) & last))
        value = values[i]
        slot = mix(uint64(value)) & last
        code = int64(table[slot]) - 1
        while code >= 0 and found[code] != value:
            slot = (slot + uint64(1)) & last
            code = int64(table[slot]) - 1
        if code < 0:
            if count == found.shape[0]:
                return int64(-1)
            code = count
            found[count] = value
            count += 1
            table[slot] = count
        codes[i] = code
    return count


@kernel_for(*((types.void, ro(kind), rw(I64), rw(I32)) for kind in CODES))
def order_by(codes, cuts, order):
    """Rows in the order of their codes; `cuts` is zero, and one longer than there are codes."""
    for i in range(codes.shape[0]):
        cuts[int64(codes[i]) + 1] += 1
    for c in range(1, cuts.shape[0]):
        cuts[c] += cuts[c - 1]
    for i in range(codes.shape[0]):
        c = int64(codes[i])
        order[cuts[c]] = i
        cuts[c] += 1


@kernel_for(*((types.void, ro(kind), ro(I32), rw(I64), rw(I32)) for kind in CODES))
def order_again(codes, before, cuts, order):
    """The same of rows that are in some order: those of equal codes stay as they are."""
    for i in range(codes.shape[0]):
        cuts[int64(codes[i]) + 1] += 1
    for c in range(1, cuts.shape[0]):
        cuts[c] += cuts[c - 1]
    for i in range(before.shape[0]):
        c = int64(codes[before[i]])
        order[cuts[c]] = before[i]
        cuts[c] += 1


@kernel_for(*((I64, ro(I32), ro(I32), ro(kind), rw(I32), rw(I32), rw(I32)) for kind in CODES))
def find_cells(order, windows, codes, starts, window_of, code_of):
    """Where window (empty: all have one) or code change along the order, and what they are; `starts` ends with the
    number of rows."""
    count, several = int64(0), windows.shape[0] > 0
    window, code = int32(0), int64(-1)
    for i in range(order.shape[0]):
        row = order[i]
        now = windows[row] if several else int32(0)
        if int64(codes[row]) != code or now != window:
            window, code = now, int64(codes[row])
            starts[count] = i
            window_of[count] = window
            code_of[count] = code
            count += 1
    starts[count] = order.shape[0]
    return count


@kernel_for(*((types.void, ro(I64), ro(kind), rw(I64)) for kind in (I32, I64)))
def gather(values, order, found):
    """Values in an order."""
    for i in range(order.shape[0]):
        found[i] = values[order[i]]


@kernel_for(
    *(
        (I64, ro(I32), ro(I32), ro(I32), ro(kind), together(ro(I64), n), *[rw(I32)] * 4, together(rw(I64), n))
        for kind in CODES
        for n in COLUMNS
    )
)
def stamp_sums(order, starts, leads, rest, values, latest, begins, lead_of, rest_of, sums):
    """Number the groups by cell and code of the rest, and add up the values of each (columns, in order). `leads` has
    the code of each cell, `latest` is −1 everywhere; `begins` gets the first group of each cell, `lead_of` and
    `rest_of` the codes of each group. Returns the number of groups."""
    count = int64(0)
    for cell in range(starts.shape[0] - 1):
        base = begins[cell] = count
        lead = leads[cell]
        for i in range(starts[cell], starts[cell + 1]):
            code = int64(rest[order[i]])
            group = int64(latest[code])
            if group < base:
                latest[code] = count
                lead_of[count] = lead
                rest_of[count] = code
                for k in range(len(values)):
                    sums[k][count] = values[k][i]
                count += 1
            else:
                for k in range(len(values)):
                    sums[k][group] += values[k][i]
    return count


@kernel_for(*((I64, ro(I32), ro(I32), ro(kind), rw(I32), rw(I64)) for kind in CODES))
def stamp_rows(order, starts, rest, latest, at):
    """The same groups: the number of every row's group."""
    count = int64(0)
    for cell in range(starts.shape[0] - 1):
        base = count
        for i in range(starts[cell], starts[cell + 1]):
            code = int64(rest[order[i]])
            group = int64(latest[code])
            if group < base:
                latest[code] = count
                group = count
                count += 1
            at[order[i]] = group
    return count


@kernel_for(
    *((types.void, ro(kind), together(ro(I64), n), together(rw(I64), n)) for kind in (I32, I64) for n in COLUMNS)
)
def add_by_place(places, values, sums):
    """Add the values of some columns to the sums of their places."""
    for i in range(places.shape[0]):
        place = places[i]
        for k in range(len(values)):
            sums[k][place] += values[k][i]


@kernel_for(*((types.void, ro(kind), I64, rw(I32)) for kind in CODES))
def combine_codes(codes, many, combined):
    """Each number becomes one of a longer key: `many` codes of another attribute to each that there was."""
    for i in range(codes.shape[0]):
        combined[i] = int32(int64(combined[i]) * many + int64(codes[i]))


@kernel_for(*((types.void, ro(few), ro(kind), rw(few)) for kind in CODES for few in CODES))
def through(mapping, codes, mapped):
    """The codes of something coarser: what the mapping has for each."""
    for i in range(codes.shape[0]):
        mapped[i] = mapping[codes[i]]
