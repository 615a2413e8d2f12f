"""Configurations read from the papers' notation."""

from __future__ import annotations

import random

import pytest

from experiments.models.notation import name_attributes, parse
from penstock.errors import QueryError
from penstock.sharing.graph.configuration import arrange
from penstock.sharing.graph.grain import letters
from penstock.sharing.graph.notation import text

FIG_3C = "ABCD(AB BCD(BC BD CD))"


@pytest.mark.parametrize(
    "written",
    [FIG_3C, "A", "ABC(AB BC) BD CD", "ABCD(AC(A C) BD(B D))", "ABCD(D ABC(A B C))", "ABCDEF(ABCDE(ABCD(ABC(AB(A)))))"],
)
def test_what_is_read_is_written(written: str) -> None:
    assert text(parse(written)) == written


def test_blanks_do_not_matter() -> None:
    assert parse(" ABC( AB(A B)C )\n D ") == parse("ABC(AB(A B) C) D")


def test_the_relation_of_all_tuples_has_a_name() -> None:
    assert name_attributes(frozenset()) == "*"


def test_random_configurations_come_back() -> None:
    for seed in range(200):
        random_ = random.Random(seed)
        grains = list(
            {letters(name) for name in ("".join(random_.sample("ABCDE", random_.randint(1, 5))) for _ in range(9))}
        )
        made = arrange(grains[:5], grains[5:], lambda grain: random_.random() * len(grain))  # noqa: B023
        assert parse(text(made), queries=made.queries) == made, f"seed {seed}"


@pytest.mark.parametrize(
    ("written", "column", "fact"),
    [
        ("", 1, "empty"),
        ("   ", 1, "empty"),
        ("ABC(AB", 4, "never closed"),
        ("ABC(AB))", 8, "without"),
        ("ABC()", 5, "feeds nothing"),
        ("(AB)", 1, "must follow"),
        ("ABC((AB))", 5, "must follow"),
        ("ABC(AB) (C)", 9, "must follow"),
        ("AB(A C)", 6, "not a part"),
        ("AB(A) CB(C D)", 12, "not a part"),
        ("AB(A B) BA", 9, "twice"),
    ],
)
def test_bad_text_is_told_with_its_column(written: str, column: int, fact: str) -> None:
    with pytest.raises(QueryError, match=fact) as caught:
        parse(written)
    assert caught.value.place is not None
    assert caught.value.place.column == column


def test_unknown_names_and_missing_queries_are_told() -> None:
    with pytest.raises(QueryError, match="'BC' is no relation"):
        parse("AB(A BC)", read={"AB": letters("AB"), "A": letters("A")}.__getitem__)
    with pytest.raises(QueryError, match="lacks 1 of 2 queries"):
        parse("AB(A B)", queries=[letters("A"), letters("C")])
