"""What goes from asking to answering: for whom, and what was found for him."""

from __future__ import annotations

from dataclasses import dataclass

from .choice import Choice
from .key import Machine
from .settings import Upstream
from .upstreams import Found


@dataclass(frozen=True)
class Client:
    """For whom an answer is.

    Attributes:
        machine: what is behind the key of the URL.
        key: that key, or for a floating name the key it stands for now.
        floating: whether the URL has a floating name.
    """

    machine: Machine
    key: str
    floating: bool = False


@dataclass(frozen=True)
class Shown:
    """One project of one upstream, chosen for one machine.

    Attributes:
        upstream: whose.
        project: normalized name.
        found: the page.
        choice: what is shown of it; None if that is all of it, as it is.
        sure: whether everything that should have been asked has been.
    """

    upstream: Upstream
    project: str
    found: Found
    choice: Choice | None
    sure: bool
