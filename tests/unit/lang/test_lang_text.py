"""Variables filled in, and places that stay those of the original text."""

from __future__ import annotations

import pytest

from penstock.errors import QueryError, TextPlace
from penstock.lang.text import Span, read_text


def place_of(text: str, word: str, variables: dict[str, str]) -> TextPlace:
    app_text = read_text(text, "a.sql", variables)
    start = app_text.expanded.index(word)
    return app_text.place(Span(start, start + len(word)))


def test_plain_text_is_kept() -> None:
    assert read_text("a\nb", "a.sql", {}).expanded == "a\nb"


def test_fills_in_names_and_strings() -> None:
    text = read_text("FROM 'csv:${folder}/x' ${alias}", "a.sql", {"folder": "data", "alias": "r"})
    assert text.expanded == "FROM 'csv:data/x' r"


def test_quotes_are_doubled_inside_strings_only() -> None:
    text = read_text("'${a}' \"${a}\" ${b}", "a.sql", {"a": "it's", "b": "its"})
    assert text.expanded == "'it''s' \"it's\" its"


def test_comments_hide_variables() -> None:
    source = "-- ${unset}\n/* ${unset} */ a"
    assert read_text(source, "a.sql", {}).expanded == source


@pytest.mark.parametrize("value", ["x", "", "something much longer", "2\nlines"])
def test_places_after_a_variable(value: str) -> None:
    text = "${v} one ${v}\n two ${v} three ${v} four"
    variables = {"v": value}
    assert place_of(text, "one", variables) == TextPlace(1, 6, 3)
    assert place_of(text, "three", variables) == TextPlace(2, 11, 5)
    assert place_of(text, "four", variables) == TextPlace(2, 22, 4)


def test_place_inside_a_variable_is_the_variable() -> None:
    assert place_of("a ${v} b", "xy", {"v": "wxyz"}) == TextPlace(1, 3, 4)


def test_place_over_a_variable_covers_it() -> None:
    assert place_of("a + ${v} + b", "a + 1234 +", {"v": "1234"}) == TextPlace(1, 1, 10)


@pytest.mark.parametrize("text", ["${", "${}", "${a b}", "${a", "'${'"])
def test_bad_variables(text: str) -> None:
    with pytest.raises(QueryError, match="is not a variable"):
        read_text(text, "a.sql", {"a": "1"})


def test_unset_variable() -> None:
    with pytest.raises(QueryError, match="variable 'k' is not set") as caught:
        read_text("a\n  '${k}'", "a.sql", {})
    assert caught.value.place == TextPlace(2, 4, 4)


@pytest.mark.parametrize("text", ["'", "'a''", '"a', "/* a", "a /*/", "'${v}"])
def test_unfinished(text: str) -> None:
    with pytest.raises(QueryError, match="unfinished"):
        read_text(text, "a.sql", {"v": "1"})


@pytest.mark.parametrize("text", ["a\x00b", "\x01", "\ufffd", chr(0xDC80), "\x7fELF"])
def test_binary(text: str) -> None:
    with pytest.raises(QueryError, match="not a text file"):
        read_text(text, "a.sql", {})


def test_byte_order_mark_is_blank() -> None:
    assert read_text("\ufeffa", "a.sql", {}).expanded == " a"
