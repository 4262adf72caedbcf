"""Commands: the variant options, in requirements files too, a session, the last line of install."""

from __future__ import annotations

import functools
import optparse
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from pip._internal.exceptions import CommandError, InstallationError
from pip._vendor.packaging.utils import canonicalize_name

from pep_variants.internal import OPTIONS, Option

from ..guard import Original, replace, switch
from ..hook import complete
from ..options import (
    DEST,
    LabelLine,
    VariantOptions,
    check_option_line,
    forces_a_label,
    note_options,
    read_line,
)
from ..session import Session, Use, last_session


def patch_commands(module: ModuleType) -> None:
    """Add the variant options to commands that resolve, and a session to their finder."""

    @replace(module.RequirementCommand, "__init__")
    def init(original: Original, self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        # Registered like pip's own, they can be set in pip.conf and by PIP_… variables.
        group = optparse.OptionGroup(self.parser, "Variant Options")
        for option in OPTIONS:
            if option.installs and self.name != "install":
                continue
            kind: dict[str, Any] = {"action": "store_true"}
            if option.repeatable:
                kind = {"action": "append", "metavar": option.metavar, "default": []}
            elif option.metavar:
                kind = {"metavar": option.metavar}
            group.add_option(f"--{option.name}", dest=_dest(option.name), help=option.help, **kind)
        self.parser.insert_option_group(1, group)

    # Also after variants were switched off: options must not be ignored silently.
    @replace(module.RequirementCommand, "_build_package_finder", always=True)
    def build_package_finder(
        original: Original, self: Any, options: optparse.Values, *args: Any, **kwargs: Any
    ) -> Any:
        values = {option.name: _value(options, option) for option in OPTIONS}
        switch.explicit = forces_a_label(values)
        switch.wanted = not values["no-variants"]
        note_options(values)
        finder = original(self, options, *args, **kwargs)
        given = [f"--{name}" for name, value in values.items() if value]
        if switch.explicit and not values["variant"]:
            given.append("VARIANTS_VARIANT")
        if not complete():
            if given and not values["no-variants"]:
                raise CommandError(
                    f"{given[0]} has no effect: {switch.reason}; to continue without variants, "
                    "set PEP_VARIANTS_SHIM=0 and remove the variant options"
                )
        elif not values["no-variants"]:
            legacy = self.determine_resolver_variant(options) == "legacy"
            if given and legacy:
                raise CommandError(f"{given[0]} has no effect with the legacy resolver")
            # Without --platform pip takes the platform of this machine, for any Python.
            foreign = bool(getattr(options, "platforms", None))
            use = Use.CHECK if legacy else Use.RESOLVE
            isolated = bool(getattr(options, "isolated_mode", False))
            variant_options = VariantOptions(values, isolated=isolated)
            Session(variant_options, finder, use=use, foreign=foreign)
        return finder


def _dest(name: str) -> str:
    return "pep_variants_" + name.replace("-", "_")


def _value(options: optparse.Values, option: Option) -> Any:
    """Return the value of *option*; pip has flags of its configuration as 0 and 1."""
    value = getattr(options, _dest(option.name), None)
    return value if option.metavar or value is None else bool(value)


def patch_summary(module: ModuleType) -> None:
    """Show labels in the last line of ``pip install``."""

    @replace(module, "write_output", shows=True)
    def write_output(original: Original, msg: Any, *args: Any) -> None:
        session = last_session()
        labels = {} if session is None else session.labels
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


_OPTION = functools.partial(
    optparse.Option,
    "--variant",
    dest=DEST,
    metavar="LABEL",
    help="Take this variant of the project or fail; empty for the non-variant wheel.",
)


def patch_requirements(module: ModuleType) -> None:
    """Add the option to pip's parser of lines, and force its labels."""

    # Also after variants were switched off: a forced label must not be ignored silently.
    @replace(module, "handle_requirement_line", always=True)
    def handle_requirement_line(
        original: Original, line: Any, options: Any = None, **kwargs: Any
    ) -> Any:
        wanted = read_line(line, getattr(options, "build_constraints", None) or ())
        if wanted is not None:
            _force(wanted)
        return original(line, options, **kwargs)

    @replace(module, "handle_option_line", always=True)
    def handle_option_line(
        original: Original, opts: Any, filename: str, lineno: int, *args: Any, **kwargs: Any
    ) -> None:
        check_option_line(opts, filename, lineno)
        original(opts, filename, lineno, *args, **kwargs)

    module.SUPPORTED_OPTIONS_REQ.append(_OPTION)


def _force(line: LabelLine) -> None:
    """Force the label of a requirement line.

    Ignored with ``--no-variants``, and in commands that install nothing.

    Raises:
        InstallationError: another label is forced as well, or variants are switched off for
            another reason than an option.
    """
    session = last_session()
    reason = ""
    if not switch.on:
        reason = switch.reason if switch.wanted else ""
    elif session is not None:
        if session.is_legacy:
            reason = "the legacy resolver cannot choose among variants"
        else:
            session.options.force(line)
    if reason:
        raise InstallationError(f"{line.where}: --variant={line.label} has no effect: {reason}")
