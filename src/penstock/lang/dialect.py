"""The sqlglot dialect `penstock`: SQL's lexis with stream clauses, and the grammar on top of it.

No word is a keyword of the tokenizer: the grammar compares words by their text where it expects one, so that
`time`, `range`, `length` or `stream` stay usable as names, as the papers' own queries use them.
"""

from __future__ import annotations

from typing import ClassVar

from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import TokenType
from sqlglot.tokens import Tokenizer as SqlTokenizer

from penstock.lang.statements import StatementGrammar


class Penstock(Dialect):
    """Registered under its lower-case name, as all sqlglot dialects are."""

    class Tokenizer(SqlTokenizer):
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            "<=": TokenType.LTE,
            ">=": TokenType.GTE,
            "<>": TokenType.NEQ,
            "!=": TokenType.NEQ,
            "==": TokenType.EQ,
            "||": TokenType.DPIPE,
            "::": TokenType.DCOLON,
        }
        NESTED_COMMENTS = False  # text.py ends a comment at the first */
        COMMANDS: ClassVar[set[TokenType]] = set()

    Parser = StatementGrammar
