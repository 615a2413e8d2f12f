"""Joins of rows that live at several instants each: a pair of rows is met once, for all instants at which both live.

A window that slides holds most of its rows at the next instant as well. A row has a *life*, a class of the instants
that it lives at; two lives have those in common that `places` names. What pairs add up to stands by place and group,
and a result is what the places that its instant lies in have together: nothing is joined twice, nothing is subtracted.

| loop | goes through |
| --- | --- |
| `fold_pairs` | pairs of rows with equal keys: rows of one side in their order, those of the other in lists by key |
| `add_cells` | rows into an array with a cell for every (life, key, group): what panes have in common becomes one |
| `fold_cells` | pairs of such cells at one instant |

`OPS` are rows (kind, column of one side, column of the other).
"""

from __future__ import annotations

from numba import types

from penstock.kernels.jit import I64, kernel, part, ro, rw
from penstock.kernels.prefetch import prefetch

ADD, LEAST_ONE, GREATEST_ONE, LEAST_OTHER, GREATEST_OTHER = range(5)
AHEAD = 12  # rows whose lists are asked for before they are needed
PLACE, LIFE, FIRST = 0, 1, 2  # columns of a listed row: its group, its life, and from here on its values


@kernel(types.void, ro(I64), ro(I64), ro(I64), ro(I64), ro(I64, 2), rw(I64, 2))
def list_living(rows, codes, lives, starts, values, out):
    """Rows in the order of their lists, all that is known of one side by side: a list is one piece of memory."""
    for i in range(starts[starts.shape[0] - 1]):
        row = rows[i]
        out[i, PLACE] = codes[row]
        out[i, LIFE] = lives[row]
        for column in range(values.shape[0]):
            out[i, FIRST + column] = values[column, row]


@part
def better(kind, known, value):
    """The lesser or the greater of two."""
    return min(known, value) if kind == LEAST_ONE or kind == LEAST_OTHER else max(known, value)


@part
def fold_list(kind, x, column, listed, begin, end, base, places, out):
    """One aggregate of a row and all rows of a list; `places` by their lives."""
    if kind == ADD:
        for j in range(begin, end):
            out[places[listed[j, LIFE]] + base + listed[j, PLACE]] += x * listed[j, column]
        return
    for j in range(begin, end):
        at = places[listed[j, LIFE]] + base + listed[j, PLACE]
        out[at] = better(kind, out[at], x if kind == LEAST_ONE or kind == GREATEST_ONE else listed[j, column])


@kernel(types.void, ro(I64), ro(I64), ro(I64), ro(I64, 2), ro(I64), ro(I64, 2), ro(I64, 2), ro(I64, 2), I64, rw(I64, 2))
def fold_pairs(keys, lives, codes, values, starts, listed, places, ops, width, out):
    """out[aggregate, place of both lives + group] of all pairs of rows with equal keys. A group is `width` times the
    code of one row and the code of the other. The caller knows that no sum overflows."""
    rows = keys.shape[0]
    for i in range(rows):
        if i + AHEAD < rows:
            prefetch(listed, starts[keys[i + AHEAD]])
        begin, end = starts[keys[i]], starts[keys[i] + 1]
        if begin == end:
            continue
        base, near = codes[i] * width, places[lives[i]]
        for q in range(ops.shape[0]):
            x, column = values[ops[q, 1], i], FIRST + ops[q, 2]
            fold_list(ops[q, 0], x, column, listed, begin, end, base, near, out[q])


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
    without any is none."""
    for i in range(one.shape[1]):
        if one[0, i] == 0:
            continue
        key, group = i // one_width, i % one_width
        begin, end = key * other_width, (key + 1) * other_width
        for q in range(ops.shape[0]):
            fold_cell(ops[q, 0], one[ops[q, 1], i], ops[q, 2], other, begin, end, out[q], group * other_width)
