"""The messages that users can meet, read from the source: errors, warnings, notices.

A message is a string or f-string that is given to an error class for users, or to a function that
prints or makes one. Its template has ``…`` where values are put in. Which classes and functions
those are is said here by rule; what is raised for programs (`ValueError` and its like) is not.
The problems that doctor knows have a page of their own.
Short ones are clauses of others.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from .environments import ROOT

ERRORS = frozenset(
    (
        "ArgumentTypeError",
        "BadParameter",
        "ClickException",
        "CommandError",
        "DistributionNotFound",
        "InstallationError",
        "LimitExceeded",
        "NoSolution",
        "PackageIndexError",
        "ProxyError",
        "RequirementError",
        "UpstreamError",
        "UsageError",
        "UvVariantsError",
        "VariantError",
    )
)
"""Bases of the errors that users see; all classes derived from them count as well."""

PRINTERS = frozenset(
    (
        *("error", "_error", "expected", "fail", "_fail", "_failed", "problem", "_problem"),
        *("refuse", "_refuse", "refused", "_refused", "_wrong", "_needs_build", "_refusal"),
        *("warn", "_warn", "warning", "critical", "note", "_note", "info", "_print", "unusable"),
        *("off", "_off", "_unsupported", "Notice", "Problem", "Support", "Unfit", "_say", "say"),
    )
)
"""Functions and classes that are given messages."""

LISTS = re.compile(r"warnings|problems|lines|notes|details|helpful|reasons|ways|facts|failures")
"""Names of lists that messages are appended to."""

SENTENCES = frozenset(
    (
        *("advice", "displaced", "elsewhere", "explanation", "lock_advice", "notices"),
        *("older_builds", "rejections", "report", "selection", "unfit", "unmatched"),
    )
)
"""Modules whose functions return or yield messages."""

LEAST = 3
"""Words of a message beside its values; what has fewer is a clause of another one."""

FINDINGS = ("error", "warning")
"""Functions of five arguments: code, file, place, message, remedy."""

_FINDING = 5
_CLAUSE = re.compile(
    r"[:,;]|\S+$|with |(the |)([Nn]on-variant|null) \w+$"
)  # the end of another message
_WORD = re.compile(r"[A-Za-z]{2,}")
_MOST = 16  # templates of one call: alternatives in an expression multiply
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Message:
    """One template and where it is.

    Attributes:
        text: with ``…`` for values, blanks normalized.
        place: file, relative to the repository, and line.
    """

    text: str
    place: str

    @property
    def is_clause(self) -> bool:
        """Whether it is only a part of other messages, as far as can be seen."""
        return len(_WORD.findall(self.text)) < LEAST or _CLAUSE.match(self.text) is not None


def messages() -> list[Message]:
    """Return every message of the sources, each once, in order of files."""
    trees = {path: ast.parse(path.read_bytes()) for path in _sources()}
    errors = _error_classes(trees.values())
    found: dict[str, Message] = {}
    for path, tree in trees.items():
        place = path.relative_to(ROOT).as_posix()
        for line, text in _of_module(tree, errors, returned=path.stem in SENTENCES):
            found.setdefault(text, Message(text, f"{place}:{line}"))
    return list(found.values())


def in_tree(tree: ast.Module) -> list[tuple[int, str]]:
    """Return line and template of the messages in one module, whose errors are known by name."""
    errors = ERRORS | {"PreferenceError", "LockError"}
    return list(dict.fromkeys(_of_module(tree, errors, returned=False)))


def _sources() -> Iterator[Path]:
    for pattern in ("packages/*/src/**/*.py", "pip-patch/src/**/*.py", "resolver-ext/src/**/*.py"):
        yield from sorted(path for path in ROOT.glob(pattern) if path.parent.name != "doctor")


def _error_classes(trees: Iterable[ast.Module]) -> frozenset[str]:
    bases: dict[str, set[str]] = {}
    for tree in trees:
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                bases.setdefault(node.name, set()).update(map(_name, node.bases))
    known = set(ERRORS)
    while new := {name for name, of in bases.items() if of & known} - known:
        known |= new
    return frozenset(known)


def _of_module(
    tree: ast.Module, errors: frozenset[str], *, returned: bool
) -> Iterator[tuple[int, str]]:
    scopes: list[ast.AST] = [tree]
    while scopes:
        nodes = list(_own_nodes(scopes.pop(), scopes))
        values: dict[str, list[ast.expr]] = {}
        for node in nodes:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                values.setdefault(node.targets[0].id, []).append(node.value)
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                values.setdefault(node.target.id, []).append(node.value)
        for node in nodes:
            for frame, expression in _expressions(node, errors, returned=returned):
                for each in _resolved(expression, values):
                    for text in _templates(each):
                        message = " ".join(frame.replace("{}", text).split())
                        if _WORD.search(message):
                            yield each.lineno, message


def _own_nodes(scope: ast.AST, functions: list[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes of *scope* but those of functions in it, which are added to *functions*."""
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        if isinstance(node, _FUNCTIONS):
            functions.append(node)
            continue
        yield node
        waiting.extend(ast.iter_child_nodes(node))


def _expressions(
    node: ast.AST, errors: frozenset[str], *, returned: bool
) -> Iterator[tuple[str, ast.expr]]:
    """Yield what *node* gives to errors and printers, with the text around it."""
    if isinstance(node, ast.Call):
        name = _name(node.func)
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        if name == "expected":
            yield from (("expected {}, found …", each) for each in given)
            return
        is_finding = isinstance(node.func, ast.Name) and name in FINDINGS
        if is_finding and len(given) == _FINDING:
            given = given[3:4]  # the remedy is printed with it
        elif name == "Problem":
            given = given[1:2]  # and so is the command
        is_list = (
            isinstance(node.func, ast.Attribute)
            and name in ("append", "extend")
            and LISTS.search(_name(node.func.value)) is not None
        )
        is_base = name == "__init__" and ast.unparse(node.func) == "super().__init__"
        if name in errors or name in PRINTERS or is_list or is_base or _prints_to_stderr(node):
            yield from (("{}", each) for each in given)
    elif isinstance(node, ast.Assign):
        if _name(node.targets[0]) in ("reason", "problem"):
            yield "{}", node.value
    elif isinstance(node, (ast.Return, ast.Yield)) and returned and node.value is not None:
        yield "{}", node.value


def _prints_to_stderr(node: ast.Call) -> bool:
    return _name(node.func) in ("print", "echo") and any(
        keyword.arg == "err" or (keyword.arg == "file" and _name(keyword.value) == "stderr")
        for keyword in node.keywords
    )


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript):
        return _name(node.value)
    return node.id if isinstance(node, ast.Name) else ""


def _resolved(node: ast.expr, values: Mapping[str, list[ast.expr]]) -> Iterator[ast.expr]:
    """Yield what *node* stands for: itself, or what a local variable is set to."""
    if isinstance(node, ast.Name):
        yield from values.get(node.id, ())
    elif isinstance(node, (ast.List, ast.Tuple)):
        for item in node.elts:
            yield from _resolved(item, values)
    elif isinstance(node, (ast.GeneratorExp, ast.ListComp)):
        yield from _resolved(node.elt, values)
    elif isinstance(node, ast.IfExp):
        yield from _resolved(node.body, values)
        yield from _resolved(node.orelse, values)
    else:
        yield node
        if isinstance(node, ast.JoinedStr):  # clauses that are put in
            parts = (part.value for part in node.values if isinstance(part, ast.FormattedValue))
            for part in parts:
                if isinstance(part, ast.Name):
                    yield from values.get(part.id, ())


def _templates(node: ast.expr) -> list[str]:
    """Return the texts that *node* may have, at most `_MOST`."""
    if isinstance(node, ast.Constant):
        return [re.sub(r"%[srdg]", "…", node.value)] if isinstance(node.value, str) else ["…"]
    if isinstance(node, ast.IfExp):
        return [*_templates(node.body), *_templates(node.orelse)][:_MOST]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        pairs = itertools.product(_templates(node.left), _templates(node.right))
        return [_merged(left + right) for left, right in pairs][:_MOST]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return _templates(node.left)
    if isinstance(node, ast.JoinedStr):
        texts = (str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
        return [_merged("".join(texts))]
    return ["…"]


def _merged(text: str) -> str:
    return re.sub("…+", "…", text)
