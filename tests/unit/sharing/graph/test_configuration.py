"""Configurations and the paper's notation of them, in and out."""

from __future__ import annotations

from experiments.models.notation import name_attributes, parse
from penstock.sharing.graph.configuration import STREAM, Configuration, arrange
from penstock.sharing.graph.grain import Grain, letters, union
from penstock.sharing.graph.notation import name_letters, text

FIG_3C = "ABCD(AB BCD(BC BD CD))"
QUERIES = [letters(each) for each in ("AB", "BC", "BD", "CD")]


def size(grain: Grain) -> float:
    return len(grain)


def test_the_papers_example_is_a_tree() -> None:
    made = parse(FIG_3C)
    assert [name_letters(node.grain) for node in made.nodes] == ["ABCD", "AB", "BCD", "BC", "BD", "CD"]
    assert [node.parent for node in made.nodes] == [STREAM, 0, 0, 2, 2, 2]
    assert made.roots == (0,)
    assert made.leaves == (1, 3, 4, 5)
    assert made.children(2) == (3, 4, 5)
    assert made.ancestors(4) == (2, 0)
    assert [made.depth(i) for i in range(6)] == [1, 2, 2, 3, 3, 3]
    assert made.below(2) == (2, 3, 4, 5)
    assert made.index(letters("BD")) == 4
    assert set(made.queries) == set(QUERIES)
    assert [name_letters(grain) for grain in made.phantoms] == ["ABCD", "BCD"]


def test_arranging_writes_the_papers_example() -> None:
    made = arrange(QUERIES, [letters("ABCD"), letters("BCD")], size)
    assert text(made) == FIG_3C
    assert made == parse(FIG_3C)


def test_a_query_may_feed_a_query() -> None:
    queries = [letters("AB"), letters("A"), letters("B")]
    made = arrange(queries, [], size)
    assert text(made) == "AB(A B)"
    assert all(node.query for node in made.nodes)
    assert parse("AB(A B)", queries=queries) == made
    assert parse("AB(A B)") != made  # there AB is a phantom


def test_queries_feed_only_where_they_are_told_to() -> None:
    queries = [letters(each) for each in ("AB", "A", "B", "CD", "C")]
    made = arrange(queries, [letters("AB"), letters("ABCD")], size, queries_feed=False)
    assert text(made) == "ABCD(AB(A B) C CD)"
    assert not made.nodes[0].query
    assert all(node.query for node in made.nodes[1:])


def test_equal_queries_are_one_relation() -> None:
    assert text(arrange([letters("A"), letters("A")], [], size)) == "A"


def test_prefixes_and_attributes_have_names() -> None:
    src, dst = frozenset({("src", 129)}), frozenset({("dst", 129)})
    src24 = frozenset({("src", 24)})
    made = arrange([src24, dst, src], [union(src, dst)], size)
    written = text(made, name_attributes)
    assert written == "dst.src(dst src(src/24))"
    names = {name_attributes(node.grain): node.grain for node in made.nodes}
    assert parse(written, queries=made.queries, read=names.__getitem__) == made


def test_edges_forget_the_order_of_children() -> None:
    assert parse("ABC(A B C)").edges == parse("ABC(C A B)").edges
    assert parse("ABC(A B C)").edges != parse("ABC(AB(A B) C)").edges
    assert Configuration(()).edges == frozenset()
