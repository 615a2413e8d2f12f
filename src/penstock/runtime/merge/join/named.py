"""Groups under other names: a side has those of its stream, a join calls them by the side as well, and keys of all
sides must be called alike to be compared."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.logical.query import Attribute
from penstock.relations.component import Component
from penstock.relations.layout import Part
from penstock.relations.relation import attribute_parts
from penstock.runtime.merge.prefixes import coarser
from penstock.state.segments.groups import Groups


def with_names(groups: Groups, names: Iterable[tuple[Attribute, Attribute]]) -> Groups:
    """The same rows with these attributes alone, (as they are called there, as they shall be called) each. Attributes
    that share a component under their new names have it as fine as any asks for it: `src` and `src/24`."""
    asked: dict[Component, Part] = {}
    for old, new in names:
        for before, after in zip(attribute_parts(old), attribute_parts(new), strict=True):
            known = asked.get(after.component)
            if known is None or before.drop < known.drop:
                asked[after.component] = before
    components, dictionaries, words = {}, {}, dict(groups.dictionaries)
    for name, part in asked.items():
        components[name] = coarser(part.component, part.drop, groups.components, words)
        if part.component in words:
            dictionaries[name] = words[part.component]
    return Groups(groups.panes, components, dictionaries, groups.count, {})
