"""Joins of rows that live at several instants each: a pair of rows is met once, for all instants at which both live.

A window that slides holds most of its rows at the next instant as well. A row has a *life*, a class of the instants
that it lives at; two lives have those in common that `places` names. What pairs add up to stands by place and group,
and a result is what the places that its instant lies in have together: nothing is joined twice, nothing is subtracted.

| loop | goes through |
| --- | --- |
| `part_rows` | rows, all that is known of one side by side, in parts by key that stay in the cache |
| `fold_parts` | pairs of rows with equal keys, part by part |
| `add_cells` | rows into an array with a cell for every (life, key, group): what panes have in common becomes one |
| `fold_cells` | pairs of such cells at one instant |

A row is WORD (life and code of its group), count(*), values that add up, least values, greatest values. `arity` says
how many of each: those that add up of both sides, then least and greatest of the one, then of the other.
"""

from __future__ import annotations

from numba import int64, types, uint64

from penstock.kernels.jit import I64, kernel, part, ro, rw

KEY, WORD, COUNT, FIRST = 0, 1, 2, 3  # columns of a row in a part; once in lists, the key is gone
LIFE_SHIFT, CODE = 32, 0xFFFFFFFF
ADD, LEAST_ONE, GREATEST_ONE, LEAST_OTHER, GREATEST_OTHER = range(5)


@kernel(types.void, ro(I64), I64, rw(I64))
def count_parts(keys, shift, counts):
    """How many rows each part has: those with keys from part << shift on."""
    for i in range(keys.shape[0]):
        counts[uint64(keys[i]) >> uint64(shift)] += 1


@kernel(types.void, ro(I64), I64, ro(I64), ro(I64), ro(I64, 2), rw(I64), rw(I64, 2))
def part_rows(keys, shift, lives, codes, values, starts, out):
    """Rows by part, in their order; `starts` of each part moves on to where the next begins."""
    for i in range(keys.shape[0]):
        p = uint64(keys[i]) >> uint64(shift)
        at = uint64(starts[p])
        starts[p] = at + 1
        out[at, KEY] = keys[i]
        out[at, WORD] = (lives[i] << LIFE_SHIFT) | codes[i]
        for column in range(values.shape[0]):
            out[at, COUNT + column] = values[column, i]


@part
def list_part(rows, begin, end, first, starts, out):
    """The rows of a part in lists by key, without their keys: those of key first + k begin at starts[k]."""
    starts[:] = 0
    for i in range(begin, end):
        starts[uint64(rows[i, KEY] - first) + uint64(2)] += 1
    for key in range(2, starts.shape[0]):
        starts[key] += starts[key - 1]
    for i in range(begin, end):
        key = uint64(rows[i, KEY] - first) + uint64(1)
        at = uint64(starts[key])
        starts[key] = at + 1
        for column in range(WORD, rows.shape[1]):
            out[at, uint64(column - 1)] = rows[i, column]


@part
def better(kind, known, value):
    """The lesser or the greater of two."""
    return min(known, value) if kind == LEAST_ONE or kind == LEAST_OTHER else max(known, value)


@part
def place_of(listed, j, near, base):
    """Where a pair stands: what both lives have in common, and the group of both."""
    word = uint64(listed[j, 0])
    return uint64(near[word >> uint64(LIFE_SHIFT)]) + base + (word & uint64(CODE))


@part
def add_list(x, listed, begin, end, column, near, base, out, q):
    """One aggregate of a row and a list: x times a column of the other side."""
    for j in range(begin, end):
        out[place_of(listed, j, near, base), q] += x * listed[j, column]


@part
def keep_list(kind, x, listed, begin, end, column, near, base, out, q):
    """The same for the lesser or greater of x, or of a column of the other side."""
    for j in range(begin, end):
        at = place_of(listed, j, near, base)
        out[at, q] = better(kind, out[at, q], x if kind == LEAST_ONE or kind == GREATEST_ONE else listed[j, column])


@part
def fold_row(row, listed, begin, end, near, base, arity, out):
    """All pairs of a row of a part and a list, aggregate by aggregate."""
    count, q = row[COUNT], uint64(1)
    add_list(count, listed, begin, end, uint64(1), near, base, out, uint64(0))
    mine, theirs = uint64(FIRST), uint64(FIRST - 1)
    for _ in range(arity[0]):
        add_list(row[mine], listed, begin, end, uint64(1), near, base, out, q)
        mine, q = mine + uint64(1), q + uint64(1)
    for _ in range(arity[1]):
        add_list(count, listed, begin, end, theirs, near, base, out, q)
        theirs, q = theirs + uint64(1), q + uint64(1)
    for number in range(arity[2] + arity[3]):
        kind = LEAST_ONE if number < arity[2] else GREATEST_ONE
        keep_list(kind, row[mine], listed, begin, end, uint64(0), near, base, out, q)
        mine, q = mine + uint64(1), q + uint64(1)
    for number in range(arity[4] + arity[5]):
        kind = LEAST_OTHER if number < arity[4] else GREATEST_OTHER
        keep_list(kind, int64(0), listed, begin, end, theirs, near, base, out, q)
        theirs, q = theirs + uint64(1), q + uint64(1)


@kernel(
    types.void, ro(I64, 2), ro(I64), ro(I64, 2), ro(I64), I64, rw(I64, 2), rw(I64),
    ro(I64, 2), ro(I64), I64, rw(I64, 2),
)  # fmt: skip
def fold_parts(one, one_parts, other, other_parts, shift, listed, starts, places, arity, width, out):
    """out[place of both lives + group, aggregate] of all pairs of rows with equal keys, part by part. A group is
    `width` times the code of one row and the code of the other. `listed` and `starts` have room for the lists of the
    largest part. The caller knows that no sum overflows."""
    for p in range(one_parts.shape[0] - 1):
        if one_parts[p] == one_parts[p + 1] or other_parts[p] == other_parts[p + 1]:
            continue
        first = int64(p) << shift
        list_part(other, other_parts[p], other_parts[p + 1], first, starts, listed)
        for i in range(one_parts[p], one_parts[p + 1]):
            key, word = uint64(one[i, KEY] - first), uint64(one[i, WORD])
            begin, end = uint64(starts[key]), uint64(starts[key + uint64(1)])
            if begin < end:
                base = (word & uint64(CODE)) * uint64(width)
                fold_row(one[i], listed, begin, end, places[word >> uint64(LIFE_SHIFT)], base, arity, out)


@kernel(types.void, ro(I64), ro(I64), ro(I64), ro(I64), I64, I64, I64, rw(I64))
def add_cells(keys, lives, codes, values, many, width, kind, cells):
    """Fold a column of rows into cells by (life, key, code), of `many` keys and `width` codes: `kind` is ADD,
    LEAST_ONE or GREATEST_ONE."""
    for i in range(keys.shape[0]):
        at = (lives[i] * many + keys[i]) * width + codes[i]
        if kind == ADD:
            cells[at] += values[i]
        elif kind == LEAST_ONE:
            cells[at] = min(cells[at], values[i])
        else:
            cells[at] = max(cells[at], values[i])


@part
def fold_cell(kind, x, column, other, begin, end, out, at):
    """One aggregate of a cell and all cells [begin, end) of the other side; the group of the first is `at`."""
    if kind == ADD:
        for j in range(begin, end):
            out[at + j - begin] += x * other[column, j]
        return
    for j in range(begin, end):
        if other[0, j] != 0:
            here = at + j - begin
            out[here] = better(kind, out[here], x if kind == LEAST_ONE or kind == GREATEST_ONE else other[column, j])


@kernel(types.void, ro(I64, 2), ro(I64, 2), ro(I64, 2), I64, I64, rw(I64, 2))
def fold_cells(one, other, ops, one_width, other_width, out):
    """out[aggregate, group] of all pairs of cells of one key; the first row of cells counts records, and a cell
    without any is none. An aggregate is (kind, column of the one, column of the other)."""
    for i in range(one.shape[1]):
        if one[0, i] == 0:
            continue
        key, group = i // one_width, i % one_width
        begin, end = key * other_width, (key + 1) * other_width
        for q in range(ops.shape[0]):
            fold_cell(ops[q, 0], one[ops[q, 1], i], ops[q, 2], other, begin, end, out[q], group * other_width)
