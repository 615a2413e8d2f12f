"""Strings and IPv6 addresses of a merge: dictionaries of its pieces joined, columns in codes of what they became."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from penstock.aggregates.base import State
from penstock.kernels.dictionary import Dictionary
from penstock.relations.component import Component
from penstock.relations.relation import Relation
from penstock.runtime.merge.inputs import GroupRows, Piece, Stored
from penstock.state.segments.groups import Groups
from penstock.state.segments.vocabulary import Vocabulary, compacted

Array = np.ndarray


class Words:
    """With a vocabulary, codes of the pieces become codes of that; with dictionaries given, they are theirs already."""

    def __init__(
        self, relation: Relation, pieces: Sequence[Piece], known: Vocabulary | Mapping[Component, Dictionary]
    ) -> None:
        self._relation, self._pieces, self._joined = relation, pieces, isinstance(known, Vocabulary)
        self._keys, self._states = relation.coded_parts, relation.coded_states
        names = sorted({*self._keys, *self._states.values()})
        if isinstance(known, Vocabulary):
            self._recoded = [self._join(piece, known, names) for piece in pieces]
            for passing in {piece.rows.run for piece in pieces if isinstance(piece.rows, GroupRows)}:
                known.forget(passing)
            self.dictionaries = {name: known.dictionary(name) for name in names}
        else:
            self._recoded = [{} for _ in pieces]
            self.dictionaries = {name: known[name] for name in names if name in known}

    def column(self, number: int, name: str) -> Array:
        """A column of a piece, in codes of the joined dictionaries."""
        recoded = self._recoded[number]
        return recoded[name] if name in recoded else self._pieces[number].column(name)

    def stored(self, number: int, name: str) -> Stored:
        """The same as it is stored."""
        recoded = self._recoded[number]
        return (recoded[name].view(np.uint64), 0) if name in recoded else self._pieces[number].stored(name)

    def own(self, groups: Groups) -> Groups:
        """Groups with dictionaries of only the strings that they use, where those are not given."""
        if not self._joined:
            return groups
        dictionaries, components, states = {}, dict(groups.components), dict(groups.states)
        for name, dictionary in groups.dictionaries.items():
            keys = [(components[name], name.code_base)] if name in self._keys else []
            coded = [state for state, found in self._states.items() if found == name and state in states]
            columns = keys + [(states[state][0], self._code_base(state)) for state in coded]
            dictionaries[name], recoded = compacted(dictionary, columns)
            if keys:
                components[name] = recoded[0]
            for state, codes in zip(coded, recoded[len(keys) :], strict=True):
                states[state] = (codes,)
        return replace(groups, components=components, dictionaries=dictionaries, states=states, coded={})

    def _join(self, piece: Piece, known: Vocabulary, names: Iterable[Component]) -> dict[str, Array]:
        """The columns of codes, in codes of the vocabulary."""
        rows, recoded = piece.rows, {}
        for component in names:
            words = partial(rows.dictionary, component)
            for column, base in self._columns(component, rows.states):
                codes, size = piece.column(column), rows.words(component)
                recoded[column] = known.recoded(rows.run, component, size, words, codes, base)
        return recoded

    def _columns(self, component: Component, states: Mapping[State, Sequence[str]]) -> list[tuple[str, int]]:
        """Columns that hold codes of this dictionary, with the value of code 0: the key, and states."""
        keys = [(component.text, component.code_base)] if component in self._keys else []
        return keys + [
            (states[state][0], self._code_base(state))
            for state, found in self._states.items()
            if found == component and state in states
        ]

    def _code_base(self, state: State) -> int:
        form = self._relation.shape.form(state)
        base = form.accumulator.code_base(form.facts.kind)
        assert base is not None
        return base
