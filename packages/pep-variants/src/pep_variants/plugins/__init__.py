"""Third-party provider plugins: whether the user allowed them, and what they say when they did.

The way of a question: `trust` decides what may be installed, `environment` installs it into a
place of its own from the user's `sources`, `process` runs `driver` in there within limits, with
the `variables` that detection needs, and `answer` checks what came back as hostile input.
`PluginRunner` is the whole of it. Nothing is imported, started or written before it is asked.
"""

from .runner import Answer, PluginRunner
from .sources import Sources
from .trust import Allowed, Refused

__all__ = ["Allowed", "Answer", "PluginRunner", "Refused", "Sources"]
