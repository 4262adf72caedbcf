"""Commands: the variant options, a session, the last line of install."""

from __future__ import annotations

import optparse
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from pip._internal.exceptions import CommandError
from pip._vendor.packaging.utils import canonicalize_name

from pep_variants.options import OPTIONS, Option

from .._guard import Original, replace, switch
from .._hook import complete
from .._options import VariantOptions, add_option, dest, is_explicit, note_options
from .._session import Session, last_session


def patch_commands(module: ModuleType) -> None:
    """Add the variant options to commands that resolve, and a session to their finder."""

    # After a fault pip goes on, and refuses the options that it does not know.
    @replace(module.RequirementCommand, "__init__", shows=True)
    def init(original: Original, self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        # Registered like pip's own, they can be set in pip.conf and by PIP_… variables.
        group = optparse.OptionGroup(self.parser, "Variant Options")
        for option in OPTIONS:
            if not option.installs or self.name == "install":
                add_option(group, option)
        self.parser.insert_option_group(1, group)

    # Also after variants were switched off: options must not be ignored silently.
    @replace(module.RequirementCommand, "_build_package_finder", always=True)
    def build_package_finder(
        original: Original, self: Any, options: optparse.Values, *args: Any, **kwargs: Any
    ) -> Any:
        values = {option.name: _value(options, option) for option in OPTIONS}
        asked = switch.asked()
        switch.explicit = is_explicit(values)
        note_options(values)
        finder = original(self, options, *args, **kwargs)
        given = [f"--{name}" for name, value in values.items() if value]
        if switch.explicit and not given:
            given.append("VARIANTS_VARIANT")
        if not complete():
            if asked and not given:  # the options could not be added
                given.append("a variable that asks for variants")
            if given and not values["no-variants"]:
                raise CommandError(
                    f"{given[0]} has no effect: {switch.reason}; to continue without variants, "
                    "set PEP_VARIANTS_SHIM=0 and remove the variant options"
                )
        elif not values["no-variants"]:
            if self.determine_resolver_variant(options) == "legacy":
                if given:
                    raise CommandError(f"{given[0]} has no effect with the legacy resolver")
                return finder
            # Without --platform pip takes the platform of this machine, for any Python.
            foreign = bool(getattr(options, "platforms", None))
            isolated = bool(getattr(options, "isolated_mode", False))
            Session(VariantOptions(values, isolated=isolated), finder, foreign=foreign)
        return finder


def _value(options: optparse.Values, option: Option) -> Any:
    """Return the value of *option*; pip has flags of its configuration as 0 and 1."""
    value = getattr(options, dest(option), None)
    return value if option.metavar or value is None else bool(value)


def patch_summary(module: ModuleType) -> None:
    """Show labels in the last line of ``pip install``."""

    @replace(module, "write_output", shows=True)
    def write_output(original: Original, msg: Any, *args: Any) -> None:
        session = last_session()
        labels = {} if session is None else session.labels
        text = str(msg)
        if session is not None and text.startswith("Would install"):
            from .._leftovers import names, tell_rivals

            tell_rivals(session, ())
            if session.leftovers:
                original("Would uninstall %s", names(session.leftovers))
        if labels and text.startswith(("Would install", "Successfully installed")):
            original("%s", _with_labels(text % args if args else text, labels))
        else:
            original(msg, *args)

    # After all files are there, before the first one is written.
    @replace(module, "install_given_reqs", shows=True)
    def install_given_reqs(original: Original, requirements: Any, *args: Any, **kwargs: Any) -> Any:
        session = last_session()
        if session is None or not (session.leftovers or session.rivals):
            return original(requirements, *args, **kwargs)
        from .._leftovers import tell_rivals, uninstalled

        tell_rivals(session, requirements)
        with uninstalled(session):
            return original(requirements, *args, **kwargs)


def _with_labels(text: str, labels: Mapping[str, str]) -> str:
    words = []
    for word in text.split(" "):
        label = labels.get(canonicalize_name(word.rpartition("-")[0]))
        words.append(f"{word}-{label}" if label else word)
    return " ".join(words)
