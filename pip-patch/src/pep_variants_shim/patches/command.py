"""Commands: our options, a session per command, and what is printed at the end."""

from __future__ import annotations

import functools
import optparse
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any

from .._vendor.pep_variants.options import OPTIONS
from ..hook import switch
from ..session import Session, current

# Options by which a command works for another machine than this one.
_FOREIGN = ("platforms", "abis", "implementation", "python_version")


def patch_commands(module: ModuleType) -> None:
    """Give the commands that install our options, and their finder a session."""
    class_ = module.RequirementCommand
    original_init = class_.__init__
    original_build = class_._build_package_finder

    @functools.wraps(original_init)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        original_init(self, *args, **kwargs)
        if not switch.on:
            return
        # Registered like pip's own, they get pip.conf keys and PIP_… variables as all options do.
        group = optparse.OptionGroup(self.parser, "Variant Options")
        for option in OPTIONS:
            kind: dict[str, Any] = {"action": "store_true"}
            if option.repeatable:
                kind = {"action": "append", "metavar": option.metavar, "default": []}
            elif option.metavar:
                kind = {"metavar": option.metavar}
            group.add_option(f"--{option.name}", dest=_dest(option.name), help=option.help, **kind)
        self.parser.insert_option_group(1, group)

    @functools.wraps(original_build)
    def build_package_finder(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        finder = original_build(self, *args, **kwargs)
        options = kwargs.get("options", args[0] if args else None)
        if switch.on and options is not None:
            values = {
                option.name: getattr(options, _dest(option.name), None) for option in OPTIONS
            }
            if not values["no-variants"]:
                foreign = any(getattr(options, name, None) for name in _FOREIGN)
                session = Session(values, finder, foreign=foreign)
                if any(values.values()):
                    session.preferences()  # misspelled options are errors, variants or not
        return finder

    class_.__init__ = init
    class_._build_package_finder = build_package_finder


def _dest(name: str) -> str:
    return "pep_variants_" + name.replace("-", "_")


def patch_summary(module: ModuleType) -> None:
    """Show labels in what ``pip install`` prints last."""
    original = module.write_output

    @functools.wraps(original)
    def write_output(msg: Any, *args: Any) -> None:  # noqa: ANN401
        session = current.get()
        text = str(msg)
        if session is None or not session.labels:
            original(msg, *args)
        elif text.startswith(("Would install", "Successfully installed")):
            original("%s", _with_labels(text % args if args else text, session.labels))
        else:
            original(msg, *args)

    module.write_output = write_output  # type: ignore[attr-defined]


def _with_labels(text: str, labels: dict[str, str]) -> str:
    from pip._vendor.packaging.utils import canonicalize_name

    words = []
    for word in text.split(" "):
        label = labels.get(canonicalize_name(word.rpartition("-")[0]))
        words.append(f"{word}-{label}" if label else word)
    return " ".join(words)


def patch_version(module: ModuleType) -> None:
    """Make ``pip --version`` name the shim."""
    original = module.get_pip_version

    @functools.wraps(original)
    def get_pip_version() -> str:
        if not switch.on:
            return str(original())
        try:
            ours = version("pep-variants-shim")
        except PackageNotFoundError:
            ours = "unknown"
        return f"{original()} with pep-variants-shim {ours}"

    module.get_pip_version = get_pip_version  # type: ignore[attr-defined]
