"""Variant markers of dependencies, reduced to plain ones (PEP 825, "Environment markers").

Once a wheel is chosen, everything that `variant_label`, `variant_namespaces`, `variant_features`
and `variant_properties` ask about it is known. So each comparison with one of them is replaced by
its truth and folded away. What remains is a marker that every release of `packaging` parses, old
ones inside old pips included, or nothing: then the requirement always applies, or never.

Comparisons of other variables are not looked into: they come back as they were written. `packaging`
does not parse them, because the clients bring very different releases of it.

In core metadata (``METADATA``, PEP 643) only the ``Requires-Dist`` fields that change are
rewritten. Everything else stays byte for byte, so that equal inputs give equal bytes on every
machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from ._model.property import Properties, iter_properties
from ._wheelfile.core_metadata import Field, check_requirements, iter_fields, one_line
from .errors import InvalidMarker, redacted, shortened
from .limits import MARKER_NESTING

__all__ = [
    "NON_VARIANT", "Term", "VariantContext", "all_of", "any_of", "conditional_dependencies",
    "is_for_extra", "may_have_terms", "metadata_terms", "reduce_metadata", "reduce_requirement",
    "reduce_requirements", "require_extras", "split_requirement", "uses_variant_terms",
    "variant_terms",
]  # fmt: skip


class Term(NamedTuple):
    """A marker, or a part of one, that is neither always true nor always false.

    Attributes:
        text: without parentheses around all of it.
        loose: whether an `or` is outermost, so that it needs parentheses beside an `and`.
    """

    text: str
    loose: bool = False


def all_of(operands: Iterable[Term | bool]) -> Term | bool:
    """Return the term that is true where all *operands* are.

    >>> from pep_variants.markers import Term, all_of
    >>> linux = Term("sys_platform == 'linux'")
    >>> all_of([linux, Term("python_version < '3.12' or extra == 'gpu'", loose=True)]).text
    "sys_platform == 'linux' and (python_version < '3.12' or extra == 'gpu')"
    >>> all_of([linux, False])
    False
    """
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
    """Return the term that is true where one of *operands* is.

    >>> from pep_variants.markers import Term, any_of
    >>> any_of([Term("sys_platform == 'linux'"), False, Term("os_name == 'nt'")]).text
    "sys_platform == 'linux' or os_name == 'nt'"
    """
    terms: list[Term] = []
    for operand in operands:
        if isinstance(operand, Term):
            terms.append(operand)
        elif operand:
            return True
    if len(terms) < 2:
        return terms[0] if terms else False
    return Term(" or ".join(term.text for term in terms), loose=True)


_EXTRA: Final = "extra"
_LABEL: Final = "variant_label"
_TERMS: Final = frozenset((_LABEL, "variant_namespaces", "variant_features", "variant_properties"))

# The text may be hostile: where a pattern fails after one way of splitting the text, every other
# way fails at its first character, so that matching takes time linear in the text.
_NAME = re.compile(r"[ \t]*[A-Za-z0-9][A-Za-z0-9._-]*[ \t]*")
_EXTRAS = re.compile(r"\[[^\]]*\][ \t]*")
_URL = re.compile(r"@[ \t]*[^ \t]+")
_SPECIFIERS = re.compile(r"[^;'\"]*")
_SPACE = re.compile(r"[ \t]*")

_STRING = r"'[^'\r\n]*'|\"[^\"\r\n]*\""
_END = r"(?![A-Za-z0-9_.])"  # of a word; `\b` would end one at the dot of `os.name`
_VARIABLE = rf"(?!(?:and|or|not|in){_END})[A-Za-z_][A-Za-z0-9_.]*{_END}"
_COMPARISON = re.compile(
    rf"[ \t]*({_STRING}|{_VARIABLE})"
    rf"[ \t]*(===|==|~=|!=|<=|>=|<|>|in{_END}|not[ \t]+in{_END})"
    rf"[ \t]*({_STRING}|{_VARIABLE})"
)
_OPEN = re.compile(r"[ \t]*\(")
_NEXT = re.compile(rf"[ \t]*(?:(and|or){_END}|(\))|\Z)")
_WORD = re.compile(r"'[^']*'|\"[^\"]*\"|[A-Za-z_][A-Za-z0-9_.]*")


@dataclass(frozen=True)
class VariantContext:
    """The chosen wheel, as far as markers can ask about it.

    Attributes:
        label: its label, empty for a non-variant wheel.
        properties: its properties, *filtered to the values that the platform supports*.

    >>> from pep_variants.markers import VariantContext
    >>> context = VariantContext("cu128", {"nvidia": {"cuda_version_lower_bound": ("12.8",)}})
    >>> sorted(context.features)
    ['nvidia :: cuda_version_lower_bound']
    >>> sorted(context.triples)
    ['nvidia :: cuda_version_lower_bound :: 12.8']
    """

    label: str
    properties: Properties

    @cached_property
    def namespaces(self) -> frozenset[str]:
        """`variant_namespaces`: the namespaces of all properties."""
        return frozenset(item.namespace for item in iter_properties(self.properties))

    @cached_property
    def features(self) -> frozenset[str]:
        """`variant_features`: the ``namespace :: feature`` pairs of all properties."""
        return frozenset(
            f"{item.namespace} :: {item.feature}" for item in iter_properties(self.properties)
        )

    @cached_property
    def triples(self) -> frozenset[str]:
        """`variant_properties`: every property as ``namespace :: feature :: value``."""
        return frozenset(str(item) for item in iter_properties(self.properties))


NON_VARIANT: Final = VariantContext("", {})
"""A non-variant wheel, as markers see it."""


def reduce_requirement(
    requirement: str, context: VariantContext, *, publishing: bool = False
) -> str | None:
    """Return a ``Requires-Dist`` value with the variant terms of its marker evaluated.

    Requirements without variant terms come back unchanged, also when they are broken in some
    other way: that is for the parser of plain requirements to judge.

    Args:
        requirement: the value.
        context: the chosen wheel.
        publishing: refuse comparisons that are meaningless but have a defined truth for installers
            (dependency specifiers, "Marker comparison operations").

    Returns:
        The requirement with a plain marker or with none, None if it cannot apply to this wheel.

    Raises:
        InvalidMarker: there are variant terms, but the requirement cannot be understood.

    >>> from pep_variants.markers import NON_VARIANT, VariantContext, reduce_requirement
    >>> context = VariantContext("cu128", {"nvidia": {"sm_arch": ("90_real",)}})
    >>> text = "triton; 'nvidia' in variant_namespaces and sys_platform == 'linux'"
    >>> reduce_requirement(text, context)
    "triton; sys_platform == 'linux'"
    >>> reduce_requirement(text, NON_VARIANT) is None
    True
    """
    if "variant_" not in requirement or not variant_terms(requirement):
        return requirement
    semicolon = _find_marker(requirement)
    if semicolon is None:
        raise InvalidMarker(
            f"{_shown(requirement)}: expected 'name ; marker' or 'name @ URL ; marker', "
            "with white space after the URL"
        )

    def truth(comparison: re.Match[str]) -> Term | bool:
        return _evaluate(comparison, context, requirement, publishing)

    return _with_marker(
        requirement, semicolon, _reduce(requirement[semicolon + 1 :], truth, requirement)
    )


def require_extras(requirement: str, extras: Collection[str]) -> str:
    """Return a ``Requires-Dist`` value as it applies where *extras* are asked for.

    Comparisons with these extras are replaced by their truth. What does not depend on an extra, or
    on another one alone, comes back unchanged.

    Args:
        requirement: the value.
        extras: normalized names.

    Raises:
        InvalidMarker: its marker cannot be understood.

    >>> from pep_variants.markers import require_extras
    >>> require_extras("pytest; extra == 'test'", ["test"])
    'pytest'
    """
    semicolon = _find_marker(requirement) if "extra" in requirement else None
    if semicolon is None or semicolon == len(requirement):
        return requirement

    def truth(comparison: re.Match[str]) -> Term | bool:
        left, operator, right = comparison.groups()
        literal = right if left == _EXTRA else left
        if _EXTRA not in (left, right) or operator != "==" or literal[0] not in "'\"":
            return Term(comparison.group().lstrip())
        is_one = re.sub(r"[-_.]+", "-", literal[1:-1]).lower() in extras
        return is_one or Term(comparison.group().lstrip())

    reduced = _reduce(requirement[semicolon + 1 :], truth, requirement)
    return _with_marker(requirement, semicolon, reduced) or requirement


def is_for_extra(requirement: str) -> bool:
    """Return whether the marker of a ``Requires-Dist`` value asks for an extra.

    Raises:
        InvalidMarker: its marker cannot be understood.
    """
    semicolon = _find_marker(requirement) if "extra" in requirement else None
    if semicolon is None or semicolon == len(requirement):
        return False
    names: set[str] = set()

    def truth(comparison: re.Match[str]) -> Term | bool:
        left, _, right = comparison.groups()
        names.update((left, right))
        return Term(comparison.group().lstrip())

    _reduce(requirement[semicolon + 1 :], truth, requirement)
    return _EXTRA in names


def _with_marker(requirement: str, semicolon: int, marker: str | bool) -> str | None:
    """Return *requirement* with another marker, which may be a truth."""
    if marker is False:
        return None
    if marker is True:
        return requirement[:semicolon].rstrip()
    space = _SPACE.match(requirement, semicolon + 1)
    assert space
    return requirement[: space.end()] + marker


def variant_terms(text: str) -> frozenset[str]:
    """Return those of the four variant variables that the marker in *text* uses.

    Only `variant_properties` needs the platform; the others follow from the wheel alone.

    Args:
        text: a requirement, or a marker alone; what is not shaped like a requirement is read as
            a marker, broken or not. Names, extras, URLs and quoted strings do not count.

    >>> from pep_variants.markers import variant_terms
    >>> sorted(variant_terms("triton; 'nvidia' in variant_namespaces or variant_label == 'rocm'"))
    ['variant_label', 'variant_namespaces']
    """
    if "variant_" not in text:
        return frozenset()
    semicolon = _find_marker(text)
    marker = text if semicolon is None else text[semicolon + 1 :]
    return _TERMS.intersection(_WORD.findall(marker))


def split_requirement(requirement: str) -> tuple[str, str]:
    """Return a ``Requires-Dist`` value without its marker, and the marker; empty without one.

    >>> from pep_variants.markers import split_requirement
    >>> split_requirement("triton>=3; sys_platform == 'linux'")
    ('triton>=3', "sys_platform == 'linux'")
    """
    semicolon = _find_marker(requirement)
    if semicolon is None:
        return requirement.strip(), ""
    return requirement[:semicolon].strip(), requirement[semicolon + 1 :].strip()


def uses_variant_terms(text: str) -> bool:
    """Return whether the marker in *text*, a requirement or a marker alone, has variant terms."""
    return bool(variant_terms(text))


def _find_marker(text: str) -> int | None:
    """Return where the semicolon before the marker of a requirement is.

    Its length if it has no marker, None if *text* has not the shape of a requirement.
    """
    if (name := _NAME.match(text)) is None:
        return None
    position = name.end()
    if extras := _EXTRAS.match(text, position):
        position = extras.end()
    if url := _URL.match(text, position):
        # A URL may hold semicolons itself, so it ends at white space only.
        space = _SPACE.match(text, url.end())
        assert space
        position = space.end()
    elif specifiers := _SPECIFIERS.match(text, position):
        position = specifiers.end()
    if position == len(text) or text[position] == ";":
        return position
    return None


class _Group:
    """Operands since an opening parenthesis: an `or` of finished `and` chains.

    Attributes:
        chains: the finished chains.
        chain: the operands of the chain that is being read.
    """

    __slots__ = ("chain", "chains")

    def __init__(self) -> None:
        self.chains: list[Term | bool] = []
        self.chain: list[Term | bool] = []

    def end_chain(self) -> None:
        self.chains.append(all_of(self.chain))
        self.chain = []

    def end(self) -> Term | bool:
        self.end_chain()
        return any_of(self.chains)


def _reduce(marker: str, truth: Callable[[re.Match[str]], Term | bool], source: str) -> str | bool:
    """Parse *marker* and fold it on the way.

    *truth* is what each comparison is replaced by, and *source* is what errors quote. There is no
    recursion, so only the limit decides how deep a marker may nest.
    """
    groups = [_Group()]
    position = 0
    while True:
        while opening := _OPEN.match(marker, position):
            position = opening.end()
            if len(groups) > MARKER_NESTING:
                raise InvalidMarker(
                    f"{_shown(source)}: more than {MARKER_NESTING} parentheses inside one another"
                )
            groups.append(_Group())
        comparison = _COMPARISON.match(marker, position)
        if comparison is None:
            raise _unexpected(marker, position, "a comparison", source)
        position = comparison.end()
        groups[-1].chain.append(truth(comparison))
        while True:
            after = _NEXT.match(marker, position)
            if after is None:
                raise _unexpected(marker, position, "'and', 'or', ')' or the end", source)
            position = after.end()
            operator, closing = after.groups()
            if operator:
                if operator == "or":
                    groups[-1].end_chain()
                break
            if (len(groups) > 1) != bool(closing):
                problem = "')' without '('" if closing else "'(' without ')'"
                raise InvalidMarker(f"{_shown(source)}: {problem} in its marker")
            value = groups.pop().end()
            if not groups:
                return value.text if isinstance(value, Term) else value
            groups[-1].chain.append(value)


def _evaluate(  # noqa: C901
    comparison: re.Match[str], context: VariantContext, source: str, publishing: bool
) -> Term | bool:
    """Return the truth of a comparison with a variant term, the text of any other.

    The operators mean what dependency specifiers say of strings and of sets of strings ("Marker
    comparison operations"): an ordered comparison of strings is ``==`` if it may be equal, else
    false, and what is not defined for sets is false.
    """
    left, operator, right = comparison.groups()
    text = comparison.group().lstrip()
    if operator.startswith("not") and operator != "not in":
        operator = "not in"  # with one blank: the parser in pip 24.0 accepts no other spelling
        text = f"{left} {operator} {right}"
    if left not in _TERMS and right not in _TERMS:
        return Term(text)

    term, literal = (left, right) if left in _TERMS else (right, left)
    problem = ""
    if literal[0] not in "'\"":
        problem = f"{term} can only be compared with a quoted string"
    elif "\\" in literal:
        # Dependency specifiers know no escapes, but `packaging` would read some.
        problem = "a quoted string must not contain a backslash"
    elif publishing and term == _LABEL:
        if operator not in ("==", "!=", "in", "not in"):
            problem = f"{term} needs ==, !=, in or not in"
    elif publishing and operator not in ("in", "not in"):
        problem = f"{term} needs in or not in"
    elif publishing and term == left:
        problem = f"{term} must be on the right of {operator}"
    if problem:
        raise InvalidMarker(f"{_shown(source)}: cannot evaluate {_shown(text)}: {problem}")

    literal = literal[1:-1]
    if term == _LABEL:
        if operator in ("<", ">"):
            return False
        if operator not in ("in", "not in"):  # ===, ~=, <= and >= are ==
            return (literal == context.label) != (operator == "!=")
        # `in` looks for a part of the string, as in all other markers.
        holds = literal in context.label if term == right else context.label in literal
    elif operator not in ("in", "not in") or term == left:
        return False
    elif term == "variant_namespaces":
        holds = literal in context.namespaces
    elif term == "variant_features":
        holds = _spaced(literal) in context.features
    else:
        holds = _spaced(literal) in context.triples
    return holds == (operator == "in")


def _spaced(literal: str) -> str:
    """Return *literal* with one blank on each side of every ``::``, as the sets have them."""
    first, *rest = literal.split("::")
    if not rest:
        return literal
    *middle, last = rest
    return " :: ".join([first.rstrip(), *(part.strip() for part in middle), last.lstrip()])


def _unexpected(marker: str, position: int, expected: str, source: str) -> InvalidMarker:
    rest = redacted(marker[position:]).strip()
    shown = shortened(rest, 40) if rest else "the end"
    return InvalidMarker(f"{_shown(source)}: expected {expected} in its marker, found {shown}")


def _shown(text: str) -> str:
    """Return *text* for a message: URLs without credentials, one line, not too long."""
    return shortened(redacted(text), 200)


_HINT = b"variant_"


def may_have_terms(metadata: bytes) -> bool:
    """Return whether *metadata* may use variant variables; False if it does not."""
    return _HINT in metadata


def metadata_terms(metadata: bytes) -> frozenset[str]:
    """Return those of the four variant variables that dependencies in *metadata* use.

    Raises:
        InvalidWheel: those that may use some are beyond the limits.
    """
    return frozenset().union(*(variant_terms(field.value) for field in _dependencies(metadata)))


def conditional_dependencies(metadata: bytes) -> tuple[str, ...]:
    """Return the dependencies in *metadata* whose markers use variant variables, unchanged.

    Raises:
        InvalidWheel: as `metadata_terms`.
    """
    return tuple(
        field.value for field in _dependencies(metadata) if uses_variant_terms(field.value)
    )


def reduce_metadata(metadata: bytes, context: VariantContext) -> bytes:
    """Return *metadata* with the variant terms of its dependencies evaluated.

    Fields keep their line ending and are written on one line. A dependency that cannot be parsed
    stays as it is, for the installer to report.

    Returns:
        The same object if nothing changes.

    Raises:
        InvalidWheel: as `metadata_terms`.
    """
    parts = []
    done = 0
    for start, end, _, value in _dependencies(metadata):
        reduced = _reduced(value, context)
        if reduced == value:
            continue
        parts.append(metadata[done:start])
        if reduced is not None:
            line_end = b"\r\n" if metadata.endswith(b"\r\n", start, end) else b"\n"
            parts.append(b"Requires-Dist: " + reduced.encode("utf-8", "surrogateescape") + line_end)
        done = end
    return b"".join((*parts, metadata[done:])) if done else metadata


def reduce_requirements(requirements: Iterable[str], context: VariantContext) -> list[str]:
    """Return those ``Requires-Dist`` values that apply, as `reduce_metadata` would write them.

    Raises:
        InvalidWheel: they are beyond the limits.

    >>> from pep_variants.markers import VariantContext, reduce_requirements
    >>> requires = ["numpy", "nccl; variant_label == 'cu128'", "mkl; variant_label == 'cpu'"]
    >>> reduce_requirements(requires, VariantContext("cu128", {}))
    ['numpy', 'nccl']
    """
    values = [one_line(value) for value in requirements]
    check_requirements(values)
    reduced = (_reduced(value, context) for value in values)
    return [value for value in reduced if value is not None]


def _reduced(value: str, context: VariantContext) -> str | None:
    try:
        return reduce_requirement(value, context)
    except InvalidMarker:
        return value


def _dependencies(metadata: bytes) -> Sequence[Field]:
    """Return every ``Requires-Dist`` that may use variant variables.

    Raises:
        InvalidWheel: they are beyond the limits; every client reads their markers by way of here.
    """
    if not may_have_terms(metadata):
        return ()
    found = [field for field in iter_fields(metadata, _HINT) if field.name == "requires-dist"]
    check_requirements([field.value for field in found])
    return found
