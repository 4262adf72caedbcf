"""Every error of dealing with package indexes. Catch `IndexProblem` for all of them.

Messages name the URL, without credentials, and say what to do.
"""

from __future__ import annotations


class IndexProblem(Exception):
    """Base of all errors of this package."""


class InvalidPage(IndexProblem):
    """A page that is no page of the simple API (PEP 503, PEP 691)."""


class NotFound(IndexProblem):
    """There is nothing at a URL (HTTP 404 and 410, a file that does not exist)."""


class AccessDenied(IndexProblem):
    """An index does not let us in (HTTP 401, 403, 407)."""


class Unreachable(IndexProblem):
    """No usable answer, after all retries: no connection, cut off, overloaded."""


class BadAnswer(IndexProblem):
    """An answer that must not be used: too large, led astray, not what its hash promises."""
