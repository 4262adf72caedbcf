"""What the flags of a variant set on the machine that will build it, which is not this one.

`flags` says what a build on this machine sets. For others, the flags that their interpreter
compiles with are not known: in their place is `INTERPRETER`, for which a shell has `COMMAND`.
"""

from __future__ import annotations

from collections.abc import Iterable

from .build_plan import BuildError
from .flags import Additions, additions
from .model import Build, Variant
from .source_project import SourceProject, read_source

INTERPRETER = "\0"
"""Stands for the flags of the interpreter that builds."""
COMMAND = '$(python -c \'import sysconfig; print(sysconfig.get_config_var("CFLAGS") or "")\')'
"""Gives them in a POSIX shell."""


def planned_source(build: Build, variants: Iterable[Variant]) -> SourceProject:
    """Return what the source says of the build; an empty one where no variant has flags."""
    if not any(variant.settings.compiler_flags for variant in variants):
        return SourceProject()
    try:
        return read_source(build.source)
    except (BuildError, OSError):  # there may be no source here, only a plan
        return SourceProject()


def planned_additions(variant: Variant, source: SourceProject, system: str = "linux") -> Additions:
    """Return what to set so that the flags of *variant* are added.

    Args:
        variant: what is built.
        source: the project that is built.
        system: `sys.platform` of the machine that builds, if the variant does not say.

    Raises:
        BuildError: the project or the environment sets an option in a way that cannot be added to.
    """
    settings = variant.settings
    words = {name: " ".join(text) for name, text in settings.flags.items()}
    target = variant.platform
    return additions(
        settings.compiler_flags,
        source,
        {**settings.environment, **words},
        settings.config_settings,
        system=target.system if target is not None else system,
        interpreter=INTERPRETER,
    )
