"""Groups under other names: a side has those of its stream, a join calls them by the side as well, and keys of all
sides must be called alike to be compared."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.logical.query import Attribute
from penstock.relations.joining import key_relation
from penstock.relations.relation import Relation, attribute_parts
from penstock.runtime.merge.rollup import with_keys_of
from penstock.state.segments.groups import Groups


def with_names(groups: Groups, of: Relation, names: Iterable[tuple[Attribute, Attribute]]) -> Groups:
    """The same rows with these attributes alone, (as they are called there, as they shall be called) each."""
    pairs = list(names)
    cut = with_keys_of(groups, key_relation(of, dict.fromkeys(old for old, _ in pairs)))
    components, dictionaries = {}, {}
    for old, new in pairs:
        for before, after in zip(attribute_parts(old), attribute_parts(new), strict=True):
            components[after.component] = cut.components[before.component]
            if before.component in cut.dictionaries:
                dictionaries[after.component] = cut.dictionaries[before.component]
    return Groups(groups.panes, components, dictionaries, groups.count, {})
