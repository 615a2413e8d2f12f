"""Queries without a window and without keys: they give one row, of no records as well."""

from __future__ import annotations

import numpy as np

from penstock.kernels.dictionary import Dictionary
from penstock.relations.relation import Relation
from penstock.state.segments.groups import Groups


def group_of_nothing(wanted: Relation) -> Groups:
    """The one group of such a query when there was no record: every state is as before its first value.

    How many values there were is told also where it is left to count(*) otherwise: none were there.
    """
    states = {}
    for state, form in wanted.shape.forms(wanted.states).items():
        kind = np.float64 if form.floating else np.int64
        states[state] = tuple(np.array([word], np.int64).view(kind) for word in form.fresh or (0,))
    dictionaries = {component: Dictionary() for component in wanted.coded_states.values()}
    return Groups(np.zeros(1, np.int64), {}, dictionaries, np.zeros(1, np.int64), states)
