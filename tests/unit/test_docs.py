"""Documents are true: what they name exists, their links lead somewhere, and examples in docstrings hold."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from penstock.aggregates.registry import AGGREGATES
from penstock.logical.query import Field
from penstock.logical.resolve.app import resolve_app
from penstock.logical.values.functions import FUNCTIONS
from penstock.sources.base import fields
from penstock.sources.capture import columns as packets
from penstock.sources.generate.source import open_generate
from support.declared_tables import Declared

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
DOCUMENTS = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").rglob("*.md"))]

PATH = re.compile(r"(?<![\w/])((?:src/)?penstock/[\w/]+\.\w+)")
OTHER_PATH = re.compile(r"(?<![\w/.])((?:examples|tests|docs|benchmarks|experiments)/[\w/.-]+\.\w+)")
DOTTED = re.compile(r"(?<![\w./])(penstock(?:\.\w+)+)")
# `runtime.tables.leaf` or `leaf.Leaf.absorb` in ARCHITECTURE.md: a package's module, then names inside it.
SHORT = re.compile(
    r"`((?:lang|logical|aggregates|relations|sharing|kernels|state|sources|sinks|runtime|monitor|app|testing)"
    r"\.(?!json`)[\w.]+)`"
)
# Beside the package, in a checkout.
OUTSIDE = re.compile(r"`((?:benchmarks|experiments)\.[\w.]+)`")
LINK = re.compile(r"\]\(([^)#:]+)\)")
ANCHOR = re.compile(r"\]\(#([^)]+)\)")
# ```sql app: a whole app; ```sql query: queries that read the stream `flows` of docs/language.md.
SQL = re.compile(r"^```sql *(.*)\n((?s:.*?))^```", re.MULTILINE)
FLOWS = "CREATE STREAM flows FROM 'generate:flows' WATERMARK ts DELAY '2 seconds';\n"


def text_of(document: Path) -> str:
    return document.read_text(encoding="utf-8")


def missing_part(dotted: str) -> str:
    """The first part of a dotted name that is neither a module nor a name inside one; empty if all are there."""
    parts = dotted.split(".")
    depth = len(parts)
    while depth and not _is_module(".".join(parts[:depth])):
        depth -= 1
    found: object = importlib.import_module(".".join(parts[:depth])) if depth else None
    for part in parts[depth:]:
        fields = getattr(found, "__dataclass_fields__", {})
        if not hasattr(found, part) and part not in fields:
            return part
        found = getattr(found, part, None)
    return ""


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def named(pattern: re.Pattern[str]) -> list[tuple[str, str]]:
    return [(d.name, name) for d in DOCUMENTS for name in sorted(set(pattern.findall(text_of(d))))]


def test_the_documents_are_there() -> None:
    for name in ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "LICENSE"):
        assert (ROOT / name).stat().st_size > 500


@pytest.mark.parametrize(("document", "path"), [*named(PATH), *named(OTHER_PATH)])
def test_paths_exist(document: str, path: str) -> None:
    assert (SOURCE / path).exists() or (ROOT / path).exists(), f"{document} names {path}"


@pytest.mark.parametrize(("document", "name"), [*named(DOTTED), *named(SHORT)])
def test_dotted_names_exist(document: str, name: str) -> None:
    assert not missing_part(f"penstock.{name.removeprefix('penstock.')}"), f"{document} names {name}"


@pytest.mark.parametrize(("document", "name"), named(OUTSIDE))
def test_names_beside_the_package_exist(document: str, name: str) -> None:
    assert not missing_part(name), f"{document} names {name}"


def test_a_records_way_has_at_most_fifteen_steps_each_with_one_function() -> None:
    way = text_of(ROOT / "ARCHITECTURE.md").partition("## A record's way")[2].partition("\n## ")[0]
    steps = re.split(r"^\d+\. ", way, flags=re.MULTILINE)[1:]
    assert 1 < len(steps) <= 15
    assert [step for step in steps if len(SHORT.findall(step)) != 1] == []


def test_the_glossary_has_each_term_once() -> None:
    terms = re.findall(r"^\| \*\*(.+?)\*\*", text_of(ROOT / "docs" / "glossary.md"), re.MULTILINE)
    assert len(terms) == len(set(terms)) > 40


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_links_lead_somewhere(document: Path) -> None:
    for target in LINK.findall(text_of(document)):
        assert (document.parent / target).exists(), f"{document.name} links to {target}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_anchors_are_headings(document: Path) -> None:
    headings = re.findall(r"^#+ (.*)$", text_of(document), re.MULTILINE)
    known = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    assert set(ANCHOR.findall(text_of(document))) <= known


def schema_of(uri: str, options: Mapping[str, str]) -> tuple[Field, ...]:
    """Whatever a stream without columns reads is taken for flow records, if it is no capture."""
    return fields(packets.schema() if uri.startswith("pcap:") else open_generate("flows", {}).schema())


@pytest.mark.parametrize(
    ("document", "kind", "text"), [(d.name, kind, text) for d in DOCUMENTS for kind, text in SQL.findall(text_of(d))]
)
def test_sql_in_the_documents_resolves(document: str, kind: str, text: str) -> None:
    assert kind in ("app", "query"), f"{document} has SQL that is neither an app nor queries:\n{text}"
    assert resolve_app(text if kind == "app" else FLOWS + text, document, schema_of, tables=Declared()).queries


def test_the_language_page_names_every_function() -> None:
    page = text_of(ROOT / "docs" / "language.md")
    assert [name for name in (*FUNCTIONS, *AGGREGATES) if not re.search(rf"`(\w+\()?{name}\b", page)] == []


def test_the_makefile_has_the_targets_of_the_documents() -> None:
    targets = set(re.findall(r"^([a-z-]+):", text_of(ROOT / "Makefile"), re.MULTILINE))
    # At the start of a line or of a code span: a command, not the verb.
    called = {name for d in DOCUMENTS for name in re.findall(r"(?:^|`)make ([a-z-]+)", text_of(d), re.MULTILINE)}
    assert called <= targets, called - targets


def modules_with_examples() -> Iterator[str]:
    for path in sorted((SOURCE / "penstock").rglob("*.py")):
        if ">>>" in path.read_text(encoding="utf-8"):
            yield ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize("name", list(modules_with_examples()))
def test_examples_in_docstrings_hold(name: str) -> None:
    tested = doctest.testmod(importlib.import_module(name))
    assert tested.attempted > 0
    assert tested.failed == 0
