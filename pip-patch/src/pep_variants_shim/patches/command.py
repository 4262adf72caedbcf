"""Commands: our options, a session per command, and what is printed at the end."""

from __future__ import annotations

import optparse
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from pip._internal.exceptions import CommandError
from pip._vendor.packaging.utils import canonicalize_name

from pep_variants.options import OPTIONS

from ..hook import complete, replace, switch
from ..session import Session, Use, current_labels

# Options by which a command works for another machine than this one.
_FOREIGN = ("platforms", "abis", "implementation", "python_version")


def patch_commands(module: ModuleType) -> None:
    """Give the commands that install our options, and their finder a session."""

    @replace(module.RequirementCommand, "__init__")
    def init(original: Callable[..., None], self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
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

    # Also if something was found missing since: options that are given must not be lost.
    @replace(module.RequirementCommand, "_build_package_finder", always=True)
    def build_package_finder(
        original: Callable[..., Any],
        self: Any,
        options: optparse.Values,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        finder = original(self, options, *args, **kwargs)
        values = {option.name: getattr(options, _dest(option.name), None) for option in OPTIONS}
        given = [f"--{name}" for name, value in values.items() if value]
        if not complete():
            if given:
                raise CommandError(f"{given[0]} has no effect: {switch.reason}")
        elif not values["no-variants"]:
            legacy = self.determine_resolver_variant(options) == "legacy"
            if given and legacy:
                raise CommandError(f"{given[0]} has no effect with the legacy resolver")
            foreign = any(getattr(options, name, None) for name in _FOREIGN)
            use = Use.CHECK if legacy else Use.CHOOSE
            Session(values, finder, use=use, foreign=foreign)
        return finder


def _dest(name: str) -> str:
    return "pep_variants_" + name.replace("-", "_")


def patch_summary(module: ModuleType) -> None:
    """Show labels in what ``pip install`` prints last."""

    @replace(module, "write_output")
    def write_output(original: Callable[..., None], msg: Any, *args: Any) -> None:
        labels = current_labels()
        text = str(msg)
        if labels and text.startswith(("Would install", "Successfully installed")):
            original("%s", _with_labels(text % args if args else text, labels))
        else:
            original(msg, *args)


def _with_labels(text: str, labels: Mapping[str, str]) -> str:
    words = []
    for word in text.split(" "):
        label = labels.get(canonicalize_name(word.rpartition("-")[0]))
        words.append(f"{word}-{label}" if label else word)
    return " ".join(words)
