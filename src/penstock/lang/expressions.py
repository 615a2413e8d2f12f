"""Scalar expressions, as sqlglot nodes with places.

or_ ─► and_ ─► not_ ─► predicate ─► joined ─► sum_ ─► product ─► sign ─► cast ─► primary
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from penstock.lang.ast import SelectQuery, Word
from penstock.lang.cursor import Cursor
from penstock.lang.text import Span

_COMPARISONS: dict[TokenType, type[exp.Binary]] = {
    TokenType.EQ: exp.EQ,
    TokenType.NEQ: exp.NEQ,
    TokenType.LT: exp.LT,
    TokenType.LTE: exp.LTE,
    TokenType.GT: exp.GT,
    TokenType.GTE: exp.GTE,
}
_JOINED: dict[TokenType, type[exp.Binary]] = {TokenType.DPIPE: exp.DPipe}
_SUMS: dict[TokenType, type[exp.Binary]] = {TokenType.PLUS: exp.Add, TokenType.DASH: exp.Sub}
_PRODUCTS: dict[TokenType, type[exp.Binary]] = {
    TokenType.STAR: exp.Mul,
    TokenType.SLASH: exp.Div,
    TokenType.MOD: exp.Mod,
}

# Reserved words that nobody would call a column.
_GLUE = frozenset({"AND", "OR", "NOT", "IN", "IS", "LIKE", "BETWEEN", "AS", "BY", "ON", "WHERE", "SELECT", "HAVING"})


class ExpressionGrammar(Cursor):
    """Precedence climbing; one method per level."""

    def select_query(self) -> SelectQuery:
        raise NotImplementedError  # the next layer, selects.py, has it

    def expression_(self) -> exp.Expr:
        with self.nested():
            return self._chain(self._and, "OR", exp.Or)

    def _and(self) -> exp.Expr:
        return self._chain(self._not, "AND", exp.And)

    def _chain(self, operand: Callable[[], exp.Expr], word: str, kind: type[exp.Connector]) -> exp.Expr:
        index = self._index
        left = operand()
        while self.take(word):
            left = self.node(kind(this=left, expression=operand()), index)
        return left

    def _not(self) -> exp.Expr:
        index = self._index
        if not self.take("NOT"):
            return self._predicate()
        with self.nested():
            return self.node(exp.Not(this=self._not()), index)

    def _predicate(self) -> exp.Expr:
        index = self._index
        left = self._joined_text()
        if self._match_set(_COMPARISONS):
            kind = _COMPARISONS[self._prev.token_type]
            return self.node(kind(this=left, expression=self._joined_text()), index)
        if self.take("IS"):
            return self._is(left, index)
        negated = self.take("NOT")
        test = self._test(left, index)
        if test is None:
            if negated:
                raise self.unexpected("IN, BETWEEN or LIKE after NOT", near=("IN", "BETWEEN", "LIKE", "ILIKE"))
            return left
        return self.node(exp.Not(this=test), index) if negated else test

    def _is(self, left: exp.Expr, index: int) -> exp.Expr:
        negated = self.take("NOT")
        if self.take("DISTINCT"):
            self.expect("FROM")
            kind = exp.NullSafeEQ if negated else exp.NullSafeNEQ
            return self.node(kind(this=left, expression=self._joined_text()), index)
        if not any(self.ahead(word) for word in ("NULL", "TRUE", "FALSE")):
            words = "NULL, TRUE, FALSE or DISTINCT FROM after IS"
            raise self.unexpected(words if negated else f"NOT, {words}", near=("NULL", "TRUE", "FALSE", "DISTINCT"))
        test = self.node(exp.Is(this=left, expression=self._primary()), index)
        return self.node(exp.Not(this=test), index) if negated else test

    def _test(self, left: exp.Expr, index: int) -> exp.Expr | None:
        """What may stand after NOT: IN, BETWEEN, LIKE."""
        if self.take("IN"):
            self.expect("(")
            if self._select_ahead():
                query = self._subquery(self._index - 1)
                return self.node(exp.In(this=left, query=query), index)
            items = self.listed(self.expression_)
            self.expect(")")
            return self.node(exp.In(this=left, expressions=list(items)), index)
        if self.take("BETWEEN"):
            low = self._joined_text()
            self.expect("AND")
            return self.node(exp.Between(this=left, low=low, high=self._joined_text()), index)
        if self.take("LIKE") or self.take("ILIKE"):
            kind = exp.Like if self._prev.text.upper() == "LIKE" else exp.ILike
            like: exp.Expr = self.node(kind(this=left, expression=self._joined_text()), index)
            if self.take("ESCAPE"):
                like = self.node(exp.Escape(this=like, expression=self._primary()), index)
            return like
        return None

    def _joined_text(self) -> exp.Expr:
        return self._binary(self._sum, _JOINED)

    def _sum(self) -> exp.Expr:
        return self._binary(self._product, _SUMS)

    def _product(self) -> exp.Expr:
        return self._binary(self._sign, _PRODUCTS)

    def _binary(self, operand: Callable[[], exp.Expr], kinds: dict[TokenType, type[exp.Binary]]) -> exp.Expr:
        index = self._index
        left = operand()
        while self._match_set(kinds):
            kind = kinds[self._prev.token_type]
            left = self.node(kind(this=left, expression=operand()), index)
        return left

    def _sign(self) -> exp.Expr:
        index = self._index
        if self._match_set((TokenType.DASH, TokenType.PLUS)):
            negative = self._prev.token_type is TokenType.DASH
            with self.nested():
                operand = self._sign()
            return self.node(exp.Neg(this=operand) if negative else exp.Paren(this=operand), index)
        return self._cast_short()

    def _cast_short(self) -> exp.Expr:
        index = self._index
        operand = self._primary()
        while self._match(TokenType.DCOLON):
            operand = self.node(self._cast_to(operand), index)
        return operand

    # -- primaries

    def _primary(self) -> exp.Expr:
        index, token = self._index, self._curr
        if self._match(TokenType.NUMBER):
            return self.node(exp.Literal.number(token.text), index)
        if self._match(TokenType.STRING):
            return self.node(exp.Literal.string(token.text), index)
        if self._match(TokenType.DOT):
            fraction = self.number("digits after '.'")
            return self.node(exp.Literal.number(f"0.{fraction.text}"), index)
        if self._match(TokenType.L_PAREN):
            return self._parenthesised(index)
        if token.token_type is TokenType.VAR:
            return self._special(index) or self._name_or_call(index)
        if token.token_type is TokenType.IDENTIFIER:
            return self._name_or_call(index)
        raise self.unexpected("an expression")

    def _parenthesised(self, index: int) -> exp.Expr:
        if self._select_ahead():
            return self._subquery(index)
        inner = self.expression_()
        self.expect(")")
        return self.node(exp.Paren(this=inner), index)

    def _select_ahead(self) -> bool:
        return self.ahead("SELECT") or self.ahead("WITH")

    def _subquery(self, index: int) -> exp.Expr:
        with self.nested():
            select = self.select_query()
        self.expect(")")
        # The select is no sqlglot node: it travels beside the placeholder.
        node = exp.Subquery(this=exp.Null())
        node.meta["select"] = select
        return self.node(node, index)

    def _special(self, index: int) -> exp.Expr | None:
        """Words that begin something else than a name: constants, typed constants, CASE, CAST, EXTRACT, EXISTS."""
        if self.take("NULL"):
            return self.node(exp.Null(), index)
        if self.take("TRUE") or self.take("FALSE"):
            return self.node(exp.Boolean(this=self._prev.text.upper() == "TRUE"), index)
        if self._next.token_type is TokenType.STRING and self.take("TIMESTAMP"):
            literal = self._primary()
            return self.node(exp.Cast(this=literal, to=exp.DataType.build("TIMESTAMP")), index)
        if self._next.token_type in (TokenType.STRING, TokenType.NUMBER) and self.ahead("INTERVAL"):
            duration = self.duration()
            interval = self.node(exp.Interval(), index)
            interval.meta["microseconds"] = duration.microseconds
            return interval
        if self.take("CASE"):
            return self._case(index)
        if self._next.token_type is TokenType.L_PAREN and self.take("CAST"):
            return self._cast(index)
        if self._next.token_type is TokenType.L_PAREN and self.take("EXTRACT"):
            return self._extract(index)
        if self.take("EXISTS"):
            self.expect("(")
            return self.node(exp.Exists(this=self._subquery(self._index - 1)), index)
        return None

    def _cast(self, index: int) -> exp.Expr:
        self.expect("(")
        operand = self.expression_()
        self.expect("AS")
        cast = self._cast_to(operand)
        self.expect(")")
        return self.node(cast, index)

    def _cast_to(self, operand: exp.Expr) -> exp.Expr:
        target = self.name("a type")
        if target.same("double"):
            self.take("PRECISION")
        cast = exp.Cast(this=operand, to=exp.Var(this=target.text))
        cast.meta["type_name"] = target
        return cast

    def _extract(self, index: int) -> exp.Expr:
        """EXTRACT(HOUR FROM ts) is hour(ts)."""
        self.expect("(")
        part = self.name("a part of a time like HOUR")
        self.expect("FROM")
        operand = self.expression_()
        self.expect(")")
        call = self.node(exp.Anonymous(this=part.text, expressions=[operand]), index)
        call.meta["name"] = part
        call.meta["extract"] = True
        return call

    def _case(self, index: int) -> exp.Expr:
        subject = None if self.ahead("WHEN") else self.expression_()
        branches: list[exp.Expr] = []
        while not branches or self.ahead("WHEN"):
            start = self._index
            self.expect("WHEN")
            condition = self.expression_()
            self.expect("THEN")
            branches.append(self.node(exp.If(this=condition, true=self.expression_()), start))
        default = self.expression_() if self.take("ELSE") else None
        self.expect("END")
        return self.node(exp.Case(this=subject, ifs=branches, default=default), index)

    def _name_or_call(self, index: int) -> exp.Expr:
        if self.at_reserved():
            raise (
                self.reserved("an expression", listed=True) if self._name_meant() else self.unexpected("an expression")
            )
        parts = [self.name("a name")]
        if self._match(TokenType.L_PAREN):
            return self._call(parts[0], index)
        while self._match(TokenType.DOT):
            if self._match(TokenType.STAR):
                return self.node(exp.Column(this=exp.Star(), table=_identifier(parts[-1])), index)
            parts.append(self.name("a column"))
            if len(parts) > 2:
                raise self.app_text.error(self.since(index), "a name has at most two parts, stream and column")
        table = _identifier(parts[0]) if len(parts) == 2 else None
        return self.node(exp.Column(this=_identifier(parts[-1]), table=table), index)

    def _name_meant(self) -> bool:
        """Whether a reserved word may stand for a column: not where it goes on with the sentence."""
        return self._curr.text.upper() not in _GLUE

    def _call(self, name: Word, index: int) -> exp.Expr:
        arguments: list[exp.Expr] = []
        distinct: Span | None = None
        if not self._match(TokenType.R_PAREN):
            if self.take("DISTINCT"):
                distinct = self.since(self._index - 1)
            self.take("ALL")
            arguments = list(self.listed(self._argument))
            self.expect(")")
        call: exp.Expr = self.node(exp.Anonymous(this=name.text, expressions=arguments), index)
        call.meta["name"] = name
        if distinct:
            call.meta["distinct"] = distinct
        return self._after_call(call, index)

    def _argument(self) -> exp.Expr:
        index = self._index
        if self._match(TokenType.STAR):
            return self.node(exp.Star(), index)
        return self.expression_()

    def _after_call(self, call: exp.Expr, index: int) -> exp.Expr:
        if self.ahead("FILTER", "("):
            self.expect("FILTER", "(", "WHERE")
            condition = self.expression_()
            self.expect(")")
            call = self.node(exp.Filter(this=call, expression=condition), index)
        if self.take("OVER"):
            self.expect("(")
            depth = 1
            while depth:
                if not self._curr:
                    raise self.unexpected("')'")
                depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(self._curr.token_type, 0)
                self._advance()
            call = self.node(exp.Window(this=call), index)
        return call


def _identifier(word: Word) -> exp.Identifier:
    identifier = exp.Identifier(this=word.text, quoted=word.quoted)
    return identifier.update_positions(line=0, col=0, start=word.span.start, end=word.span.end - 1)
