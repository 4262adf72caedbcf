"""The pages of messages have an entry for every message of the sources, and no other entries."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from support.environments import ROOT
from support.messages import Message, messages

PAGES = sorted((ROOT / "docs" / "reference").glob("messages*.md"))
ROW = re.compile(r"\| (`+)(?P<message>.+?)\1 \| (?P<cause>.+) \| (?P<remedy>.+) \|")
PLACEHOLDER = re.compile(r"…|\b[A-Z][A-Z0-9_]+\b")
"""What stands for any text: an ellipsis, and words in capitals."""


class Entry(NamedTuple):
    """A row of a page: message, cause, remedy."""

    page: str
    message: str
    cause: str
    remedy: str

    @property
    def pattern(self) -> re.Pattern[str]:
        """What the templates of the message match."""
        return re.compile(".*".join(map(re.escape, PLACEHOLDER.split(self.message))))


@cache
def entries() -> tuple[Entry, ...]:
    return tuple(entry for page in PAGES for entry in entries_of(page))


def entries_of(page: Path) -> Iterator[Entry]:
    for line in page.read_text("utf-8").splitlines():
        if line.startswith("| `"):
            row = ROW.fullmatch(line)
            assert row is not None, line
            message, cause, remedy = (
                row[name].replace("\\|", "|") for name in ("message", "cause", "remedy")
            )
            yield Entry(page.name, message, cause, remedy)


@cache
def found() -> tuple[Message, ...]:
    return tuple(messages())


def test_every_message_has_an_entry():
    patterns = [entry.pattern for entry in entries()]
    missing = [
        f"add an entry for {message.text!r} ({message.place}) to docs/reference/messages.md"
        for message in found()
        if not message.is_clause
        and not any(pattern.fullmatch(message.text) for pattern in patterns)
    ]
    assert not missing, "\n".join(missing)


def test_every_entry_is_of_a_message():
    texts = [message.text for message in found()]
    unknown = [
        f"{entry.page}: no message is {entry.message!r}: correct or remove the entry"
        for entry in entries()
        if not any(map(entry.pattern.fullmatch, texts))
    ]
    assert not unknown, "\n".join(unknown)


def test_entries_say_something():
    """Words to search for, each once, and what to do."""
    seen: set[tuple[str, str]] = set()
    for entry in entries():
        words = re.findall(r"[A-Za-z]{2,}", PLACEHOLDER.sub(" ", entry.message))
        assert words, entry
        assert (entry.page, entry.message) not in seen, entry
        seen.add((entry.page, entry.message))
        assert entry.remedy != "-" or entry.cause != "-", entry


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ('raise PreferenceError(f"{path}: not a file: " + why)', ["…: not a file: …"]),
        ('warn("one of them" if one else f"{count} of them")', ["one of them", "… of them"]),
        ('problem = f"is {value}, too"\nraise LockError(path, problem)', ["is …, too"]),
        ('yield error("code", file, place, "is lost here", "find it soon")', ["is lost here"]),
        ('logger.warning("of %s and %s only", one, two)', ["of … and … only"]),
        ('raise ValueError("not for users at all")', []),
    ],
)
def test_how_messages_are_read(source, texts):
    import ast

    from support.messages import in_tree

    assert [text for _, text in in_tree(ast.parse(source))] == texts
