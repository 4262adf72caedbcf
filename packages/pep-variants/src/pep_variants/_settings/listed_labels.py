"""Labels that a requirements file names, in comments, so that any pip reads the same file.

A comment is the option as on a command line, on a line of its own or behind a requirement:
``# --variant torch=cu128``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_COMMENT = re.compile(
    r"(?:^|\s)#[ \t]*--variant[= ]([A-Za-z0-9._-]{1,128}=[a-z0-9._]{0,128})[ \t]*$"
)


def listed_labels(text: str) -> tuple[str, ...]:
    r"""Return the labels in the comments of a requirements file, as values of ``--variant``.

    >>> from pep_variants.preferences import listed_labels
    >>> listed_labels("# --variant torch=cu128\ntorch==2.9.0\n")
    ('torch=cu128',)
    """
    if "--variant" not in text:
        return ()
    return tuple(match[1] for match in map(_COMMENT.search, text.splitlines()) if match)


def label_comment(project: str, label: str) -> str:
    """Return the comment that `listed_labels` reads."""
    return f"# --variant {project}={label}"


def with_listed(options: Mapping[str, Any], listed: tuple[str, ...]) -> dict[str, Any]:
    """Return *options* with labels of requirements files, of which an option goes before.

    Args:
        options: values of options by their names.
        listed: from `listed_labels`.
    """
    own = tuple(options.get("variant") or ())
    given = set(map(_project, own))
    added = (each for each in listed if _project(each) not in given)
    variant = (*dict.fromkeys(added), *own)
    return {**options, "variant": variant} if variant else dict(options)


def _project(value: str) -> str:
    """Return the normalized name (PEP 503) in a value of ``--variant``; pip needs no more here."""
    return re.sub(r"[-_.]+", "-", value.partition("=")[0]).lower()
