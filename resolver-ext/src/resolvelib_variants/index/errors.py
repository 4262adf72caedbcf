"""Every error of dealing with package indexes. Catch `IndexProblem` for all of them.

Messages name the URL, without credentials, and say what to do.
"""

from __future__ import annotations


class IndexProblem(Exception):
    """Base of all errors of this package."""


class InvalidPage(IndexProblem):
    """A page that is no page of the simple API (PEP 503, PEP 691)."""
