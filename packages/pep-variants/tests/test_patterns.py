"""Patterns that are compiled when they are first used."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from pep_variants.patterns import pattern


def test_it_has_what_a_compiled_one_has():
    ours, theirs = pattern("(?P<one>a)|B", re.IGNORECASE), re.compile("(?P<one>a)|B", re.IGNORECASE)
    for text in ("a", "b", "xA", ""):
        for name in ("match", "fullmatch", "search"):
            found, expected = getattr(ours, name)(text), getattr(theirs, name)(text)
            assert (found and found.groupdict()) == (expected and expected.groupdict())
        assert ours.findall(text) == theirs.findall(text)
        assert ours.sub("-", text) == theirs.sub("-", text)
    assert ours.pattern == theirs.pattern
    assert ours.groups == theirs.groups
    assert ours.match is ours.match


def test_an_unknown_attribute():
    with pytest.raises(AttributeError, match="nothing"):
        pattern("a").nothing


def test_the_engine_compiles_none_when_it_is_imported():
    script = """
import re, sys, packaging.utils
known = re.compile
def compiled(text, flags=0):
    caller = sys._getframe(1).f_globals["__name__"]
    assert not caller.startswith("pep_variants"), (caller, text)
    return known(text, flags)
re.compile = compiled
import pep_variants.errors, pep_variants.model.label, pep_variants.choose.markers
import pep_variants.choose.selection, pep_variants.choose.abi, pep_variants.formats.reader
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
