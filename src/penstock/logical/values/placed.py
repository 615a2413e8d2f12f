"""What all clauses have in common: the protocol of a scope, and how a rule's complaint gets its place.

`scalars`, `predicates`, `functions` and `casts` resolve the parts of an expression; they meet here, so that
none has to import the one that calls it. `Resolve` is the recursion they are handed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from sqlglot import exp

from penstock.errors import QueryError
from penstock.lang.ast import span_of
from penstock.lang.text import AppText
from penstock.logical.expressions import Expression, Literal
from penstock.logical.values import constants, type_rules

T = TypeVar("T")


class NameScope(Protocol):
    """What names and aggregates mean in one clause."""

    @property
    def text(self) -> AppText: ...

    def known(self, node: exp.Expr) -> Expression | None:
        """A whole expression with a meaning of its own here, such as a prefix or a grouped expression."""
        ...

    def name(self, node: exp.Column) -> Expression: ...

    def aggregate(self, node: exp.Anonymous, condition: exp.Expr | None) -> Expression:
        """An aggregate, with the condition of its FILTER."""
        ...


Resolve = Callable[[exp.Expr, NameScope], Expression]
Operand = tuple[exp.Expr, Expression]


def not_yet(text: AppText, node: exp.Expr, feature: str, hint: str = "") -> QueryError:
    return text.error(span_of(node), f"{feature} is not executable yet", hint)


def placed(node: exp.Expr, scope: NameScope, build: Callable[[], T]) -> T:
    """Run a rule, and give its complaint the node's place."""
    try:
        return build()
    except type_rules.Mismatch as problem:
        raise scope.text.error(span_of(node), problem.fact, problem.hint) from None
    except constants.BadConstant as problem:
        raise scope.text.error(span_of(node), str(problem), problem.hint) from None


def compared(node: exp.Expr, operator: str, left: Operand, right: Operand, scope: NameScope) -> Expression:
    """A comparison; a constant that is no value of the other side's type is blamed at its own place."""
    try:
        return type_rules.compare(operator, left[1], right[1])
    except type_rules.Mismatch as problem:
        raise scope.text.error(span_of(node), problem.fact, problem.hint) from None
    except constants.BadConstant as problem:
        # Only a text constant can be bad here, and it is one of the two.
        bad = right if isinstance(right[1], Literal) else left
        raise scope.text.error(span_of(bad[0]), str(problem), problem.hint) from None


def condition(node: exp.Expr, scope: NameScope, where: str, resolve: Resolve) -> Expression:
    """A BOOLEAN expression; `where` is the word that asks for one."""
    resolved = resolve(node, scope)
    return placed(node, scope, lambda: type_rules.truth(resolved, where))
