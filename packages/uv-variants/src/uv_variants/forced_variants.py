"""Variants that the user asks for by name: they are there after the command, or it fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import VariantMissing
from .report import why_missing

if TYPE_CHECKING:
    from .context import Context
    from .installed_state import InstalledState
    from .proxy_client import Choices, VersionChoice


def check_before(context: Context, choices: Choices) -> None:
    """Check that what is forced can be had, before uv runs.

    Raises:
        VariantMissing: no version that the requirements admit has the variant, or the lock has
            another one and has to stay as it is.
    """
    forced = context.preferences.forced
    if context.is_frozen:
        _check_lock(context)
    names = [name for name in forced if name in context.requested]
    if not names or context.is_offline or context.is_frozen:
        return
    choices.ask(names)
    for name in names:
        admitted = admitted_choices(context, choices, name)
        if not any(choice.shows(forced[name]) for choice in admitted.values()):
            why = why_missing(name, forced[name], admitted or choices.of(name))
            if why is not None:
                raise VariantMissing(why)


def check_after(state: InstalledState) -> None:
    """Check that what is forced is installed, after uv succeeded.

    Raises:
        VariantMissing: something else is.
    """
    from .site_packages import installed_variants, installed_without_variant

    context = state.context
    environments = context.environments
    if context.invocation.has("dry-run"):
        return
    if not environments:
        for name, label in context.preferences.forced.items():
            if context.invocation.command in (("pip", "install"), ("pip", "sync")):
                raise VariantMissing(
                    f"uv succeeded, but where it installed is not known, so {name} may be other "
                    f"than {_option(name, label)} asks for: name the environment with --python PATH"
                )
        return
    now = installed_variants(environments)
    forced = dict(context.preferences.forced)
    if not context.preferences.use_variants:
        forced |= dict.fromkeys(now, "")
    for name, label in forced.items():
        found = now.get(name) or installed_without_variant(environments, name)
        if found is None or (found.label or "") == label:
            continue
        if context.preferences.catalog is not None:
            state.choices.ask([name])
        if (state.choices.label_of(found) or "") != label:
            has = f"variant {found.label!r}" if found.label else "the non-variant wheel"
            raise VariantMissing(
                f"{name} {found.version} is installed as {has}, not as {_option(name, label)} "
                "asks: uv kept it; install it again with --reinstall-package " + name
            )


def admitted_choices(context: Context, choices: Choices, name: str) -> dict[str, VersionChoice]:
    """Return the choices for the versions of a project that the requirements admit."""
    from .named_projects import admits, requirement_texts

    texts = requirement_texts(context.invocation, context.place)
    return {
        version: choice
        for version, choice in choices.of(name).items()
        if admits(texts, name, version)
    }


def _check_lock(context: Context) -> None:
    """Raise an error if options on the command line ask for other variants than a frozen lock."""
    given = context.options.variants
    forced = dict(context.preferences.forced) if "variant" in given else {}
    if "no-variants" in given:
        forced |= dict.fromkeys(context.lock.projects, "")
    for name, label in forced.items():
        for version, labels in context.lock.labels.get(name, {}).items():
            if label not in labels:
                raise VariantMissing(
                    f"{context.lock.path} has variant {labels[0]!r} of {name} {version}, not what "
                    f"{_option(name, label)} asks for, and --frozen or --locked keeps it: lock "
                    "without them"
                )


def _option(name: str, label: str) -> str:
    return f"--variant {name}={label}" if label else f"--no-variants or --variant {name}="
