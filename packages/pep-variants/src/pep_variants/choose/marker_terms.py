"""Text of markers, joined by `and` and `or` with no more parentheses than needed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Term(NamedTuple):
    """A marker, or a part of one, that is neither always true nor always false.

    Attributes:
        text: without parentheses around all of it.
        loose: whether an `or` is outermost, so that it needs parentheses beside an `and`.
    """

    text: str
    loose: bool = False


def all_of(operands: Iterable[Term | bool]) -> Term | bool:
    """Return the term that is true where all *operands* are."""
    terms: list[Term] = []
    for operand in operands:
        if isinstance(operand, Term):
            terms.append(operand)
        elif not operand:
            return False
    if len(terms) < 2:
        return terms[0] if terms else True
    texts = (f"({term.text})" if term.loose else term.text for term in terms)
    return Term(" and ".join(texts))


def any_of(operands: Iterable[Term | bool]) -> Term | bool:
    """Return the term that is true where one of *operands* is."""
    terms: list[Term] = []
    for operand in operands:
        if isinstance(operand, Term):
            terms.append(operand)
        elif operand:
            return True
    if len(terms) < 2:
        return terms[0] if terms else False
    return Term(" or ".join(term.text for term in terms), loose=True)
