"""Plans of joins that are asked for by name or by bits."""

from __future__ import annotations

import pytest

from penstock.errors import ConfigError
from penstock.logical.query import QuerySet
from penstock.logical.resolve.app import resolve_app
from penstock.sharing.joins.asked import check_asked, check_word, unpriced_choices
from penstock.sharing.joins.plans import plan_name, plans_of, side_tables
from penstock.sharing.plan import joins_in, unshared_plans, with_joins

STREAMS = "".join(
    f"CREATE STREAM {name} (ts TIMESTAMP, k INT, g INT) FROM 'csv:{name}' WATERMARK ts DELAY '1 s';" for name in "stu"
)
TWO = "CREATE QUERY two AS SELECT count(*) AS n FROM s A [RANGE '1 minute'], t B [RANGE '1 minute'] WHERE A.k = B.k;"
THREE = (
    "CREATE QUERY three AS SELECT count(*) AS n FROM s A [RANGE '1 minute'], t B [ROWS 9], u C [RANGE '1 minute'] "
    "WHERE A.k = B.k AND B.k = C.k EVERY 1 MINUTE;"
)


def app(*queries: str) -> QuerySet:
    return resolve_app(STREAMS + "".join(queries), "app.sql", lambda uri, options: ())


def late(asked: str, *queries: str) -> list[str]:
    return sorted(side_tables(unpriced_choices(asked, app(*queries)).values()).late)


def test_plans_have_the_names_of_the_paper() -> None:
    assert [plan_name(one) for one in plans_of(app(TWO).query("two").join)] == ["LAP", "EAP01", "EAP10", "EAP11"]  # type: ignore[arg-type]
    assert [plan_name(one) for one in plans_of(app(THREE).query("three").join)] == [  # type: ignore[arg-type]
        "LAP", "EAP001", "EAP100", "EAP101",
    ]  # fmt: skip


def test_what_is_asked_for_is_done() -> None:
    assert late("early", TWO, THREE) == ["three:B"]
    assert late("auto", TWO, THREE) == ["three:B"]  # nothing is known yet
    assert late("late", TWO, THREE) == ["three:A", "three:B", "three:C", "two:A", "two:B"]
    assert late("10", TWO, THREE) == ["three:B", "two:B"]
    assert late("001", TWO, THREE) == ["three:A", "three:B"]


def test_a_choice_stands_with_the_first_stream_of_its_join() -> None:
    made = app(TWO, THREE)
    plans = with_joins(unshared_plans(made), made, unpriced_choices("late", made))
    assert [one.query for one in plans["s"].joins] == ["two", "three"]
    assert plans["t"].joins == plans["u"].joins == ()
    assert joins_in(plans).keys() == {"two", "three"}


@pytest.mark.parametrize("asked", ["", "12", "Early", "1 0"])
def test_what_is_neither_a_word_nor_bits_is_refused(asked: str) -> None:
    with pytest.raises(ConfigError, match="unknown joins"):
        check_word(asked)


@pytest.mark.parametrize("asked", ["auto", "early", "late", "10", "01", "100", "001"])
def test_bits_must_fit_a_join(asked: str) -> None:
    check_word(asked)
    check_asked(asked, app(TWO, THREE))


@pytest.mark.parametrize(
    ("asked", "queries", "told"),
    [
        ("1", (TWO,), "joins of 1 stream, and there is none"),
        ("101", (TWO,), "joins of 3 streams, and there is none"),
        ("010", (TWO, THREE), "B of query 'three' is the last records"),
        ("10", (), "has no join"),
    ],
)
def test_bits_that_fit_nothing_are_refused(asked: str, queries: tuple[str, ...], told: str) -> None:
    plain = "CREATE QUERY q AS SELECT count(*) AS n FROM s [RANGE '1 minute'];"
    with pytest.raises(ConfigError, match=told):
        check_asked(asked, app(plain, *queries))
