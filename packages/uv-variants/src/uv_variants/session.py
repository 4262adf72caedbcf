"""One command of uv's with the shim: planned, run, reported."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pep_variants.errors import VariantError

from .address import RESERVED_HOST, RESERVED_URL, USERNAME
from .commands import Scope
from .decisions import Asked
from .effects import Effects
from .errors import ShimFailed, UvVariantsError
from .lockfile import HERE, lock_path, locked_key
from .plan import Place, Plan, make_plan
from .process import end_as, run_uv
from .shim.urls import index_url, links_url
from .shims import Opening, Reachable
from .uv import become_uv, cache_directory, tool_directory
from .wishes import FLOATING, Wishes

if TYPE_CHECKING:
    from pep_variants.platform import Platform
    from pep_variants.preferences import Preferences

    from .indexes import UserIndex
    from .invocation import Invocation
    from .machine import Subject

_LOCKED = (("run",), ("sync",), ("lock",), ("tree",), ("export",))
"""Commands that ask no index if the lock file and the environment are as they should be."""

_PROXIES = ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")


@dataclass(frozen=True)
class Session:
    """What is known of a command before it runs.

    Attributes:
        uv: path of uv.
        invocation: uv's command line.
        scope: what it works on.
        place: where.
        wishes: our own options.
        preferences: all that was asked for.
        cache: directory of the shim's.
        lock: where the lock file is, None for commands without one.
    """

    uv: str
    invocation: Invocation
    scope: Scope
    place: Place
    wishes: Wishes
    preferences: Preferences
    cache: Path
    lock: Path | None


def run(
    uv: str, invocation: Invocation, scope: Scope, wishes: Wishes, environ: Mapping[str, str]
) -> int:
    """Run uv with *wishes*; return the exit code.

    Raises:
        UvVariantsError, VariantError: something is wrong with what was asked for.
    """
    place = Place.of(invocation, Path(), environ)
    preferences = _preferences(wishes, place)
    lock = _lock(invocation, scope, place)
    if preferences.coherent:
        print(
            "uv-variants: --variant-coherent has no effect with uv, which is told of one project "
            "at a time; name the variants with --variant NAME=LABEL",
            file=sys.stderr,
        )
    base = wishes.shim or RESERVED_URL
    locked = locked_key(lock, base)
    if not preferences.use_variants and locked is None:
        return become_uv([uv, *wishes.rest], environ)
    session = Session(
        uv, invocation, scope, place, wishes, preferences, shim_cache_directory(environ), lock
    )
    if wishes.shim:
        return end_as(_with_shared_shim(session, locked))
    _restore_left_over(session)
    opening = Opening(environ, at_once=_needs_index(session, locked))
    try:
        return end_as(_with_shim(session, opening, locked))
    finally:
        opening.stop()


def _needs_index(session: Session, locked: str | None) -> bool:
    """Return whether uv is going to ask the index for certain, or nearly so."""
    if locked is None or session.invocation.command not in _LOCKED:
        return True
    upgrades = session.invocation.values("upgrade-package", "reinstall-package")
    return bool(upgrades) or session.invocation.has("upgrade", "U", "reinstall", "refresh")


def shim_cache_directory(environ: Mapping[str, str]) -> Path:
    """Return where the shim keeps what it fetched: beside what the engine keeps."""
    named = environ.get("VARIANTS_CACHE_DIR")
    if named:
        return Path(named).absolute() / "shim"
    import platformdirs

    return platformdirs.user_cache_path("variants", appauthor=False) / "shim"


def _preferences(wishes: Wishes, place: Place) -> Preferences:
    from pep_variants.preferences import configuration_paths, load_preferences

    prefix = place.environ.get("VIRTUAL_ENV") or str(place.project / ".venv")
    return load_preferences(
        wishes.options, place.environ, configuration_paths(place.cwd, prefix=prefix)
    )


def _lock(invocation: Invocation, scope: Scope, place: Place) -> Path | None:
    if scope is not Scope.PROJECT:
        return None
    from .configuration import workspace_root

    script = invocation.last("script")
    if invocation.command == ("run",) and invocation.operands:
        operand = invocation.operands[0]
        if operand.endswith(".py") and lock_path(None, place.cwd / operand).is_file():  # type: ignore[union-attr]
            script = operand
    return lock_path(
        workspace_root(place.project.absolute()), place.cwd / script if script else None
    )


@dataclass(frozen=True)
class _Ready:
    """All that is needed to run uv."""

    shim: Reachable
    plan: Plan
    asked: Asked
    effects: Effects
    arguments: list[str]
    environ: dict[str, str]


def _with_shim(session: Session, opening: Opening, locked: str | None) -> int:
    try:
        ready = _prepared(session, opening, locked)
    except (UvVariantsError, VariantError):
        raise
    except Exception as error:
        # A fault of ours costs variants, not the command; unless the command cannot do without.
        fault = f"a fault in uv-variants: {type(error).__name__}: {error}"
        if session.preferences.forced or locked is not None:
            raise ShimFailed(fault) from error
        print(f"uv-variants: variant wheels are ignored, by {fault}", file=sys.stderr)
        opening.stop()
        return become_uv([session.uv, *session.wishes.rest], session.place.environ)
    try:
        with _restoring(session, ready.plan):
            code = run_uv([session.uv, *ready.arguments], ready.environ)
        failure = ready.shim.failure()
        if failure is not None:
            raise failure
        if code == 0:
            ready.effects.report()
            _learn_afterwards(session, ready)
        elif session.preferences.forced:
            ready.effects.explain_failure()
        return code
    finally:
        ready.shim.stop()


def _prepared(session: Session, opening: Opening, locked: str | None) -> _Ready:
    invocation, place = session.invocation, session.place
    plan = make_plan(invocation, session.scope, place)
    key, subject = _key(session, plan, locked)
    if invocation.has("v", "verbose") and subject is not None and subject.platform is not None:
        from .report import report_platform

        report_platform(subject.platform)
    shim = opening.open(_told(session, plan, subject), plan.indexes)
    asked = Asked(shim.port, shim.token, key, plan.order, plan.only)
    if _learn(session, asked, _requested(session)):
        key, subject = _key(session, plan, locked)
        asked = replace(asked, key=key)
    effects = Effects.of(session, asked, subject.key if subject else key)

    def url(index: UserIndex) -> str:
        path = (links_url if index.links else index_url)(key, index.shim_name)
        return RESERVED_URL + path

    arguments, variables = plan.told(invocation, url, effects.reinstall())
    environ = {**place.environ, **variables}
    environ.update(proxied(environ, shim.port, shim.token, plan))
    if key == HERE and subject is not None:
        environ["UV_CACHE_DIR"] = str(_own_cache(session, plan, subject))
    return _Ready(shim, plan, asked, effects, arguments, environ)


def _key(session: Session, plan: Plan | None, locked: str | None) -> tuple[str, Subject | None]:
    """Return the key that uv's URLs have, and for whom it stands; None: for whom the lock says."""
    from .machine import subject_of

    wishes = session.wishes
    if locked not in (None, HERE) and wishes.lock is None and not wishes.options:
        return locked, None
    subject = subject_of(
        session.preferences,
        session.cache,
        python_platform=session.invocation.last("python-platform"),
        more=_asked_plugins(session, plan) if plan is not None else None,
    )
    floating = session.scope is Scope.PROJECT and (
        wishes.lock == FLOATING or (wishes.lock is None and locked == HERE)
    )
    return (HERE if floating else subject.key), subject


def _runs_plugins(session: Session) -> bool:
    preferences = session.preferences
    return bool(preferences.allow_providers) and preferences.platform_file is None


def _asked_plugins(session: Session, plan: Plan) -> Platform | None:
    """Return what plugins support that the user allowed, None if none are."""
    if not _runs_plugins(session):
        return None
    from .providers import Memory, supported_by

    place = session.place
    strategy = session.invocation.last("index-strategy") or place.environ.get("UV_INDEX_STRATEGY")
    return supported_by(Memory(session.cache).load(), session.preferences, plan, strategy)


def _requested(session: Session) -> list[str]:
    if not _runs_plugins(session):
        return []
    from .providers import requested

    return requested(session.invocation, session.place)


def _learn(session: Session, asked: Asked, projects: Iterable[str]) -> bool:
    """Remember the providers that *projects* want; return whether one is new."""
    if not _runs_plugins(session) or asked.key == HERE:
        return False
    from .providers import Memory, Wanted

    decisions = asked.decisions(projects)
    return Memory(session.cache).learn(
        Wanted.read(namespace, tree)
        for versions in decisions.values()
        for decision in versions.values()
        for namespace, tree in decision.providers.items()
    )


def _learn_afterwards(session: Session, ready: _Ready) -> None:
    """Remember the providers that dependencies want; nobody knew of them before uv ran.

    Whoever allowed one of their plugins is told that the next command has its variants.
    """
    if not _runs_plugins(session) or not _learn(session, ready.asked, ready.effects.projects()):
        return
    key, _ = _key(session, ready.plan, None)
    if key not in (ready.asked.key, HERE):
        again = " with --variant-lock pinned" if session.scope is Scope.PROJECT else ""
        print(
            "uv-variants: dependencies want provider plugins that you allowed, which have been "
            f"asked only now: run the command again{again} to have their variants",
            file=sys.stderr,
        )


@contextmanager
def _restoring(session: Session, plan: Plan) -> Iterator[None]:
    """Restore afterwards what uv writes of indexes into files of the user's."""
    command = session.invocation.command
    if command == ("add",):
        path = _changed_file(session)
        if path is None:
            yield
            return
        from .restoring import Restoring

        restoring = Restoring(path, session.cache)
        restoring.begin(plan.persistent)
        try:
            yield
        finally:
            restoring.end()
        return
    yield
    if command in (("tool", "install"), ("tool", "upgrade")):
        from .restoring import restore_receipts

        restore_receipts(tool_directory(session.place.environ).glob("*"), plan.indexes)


def _restore_left_over(session: Session) -> None:
    """Restore a file that an earlier command was not there to restore any more."""
    if session.scope is not Scope.PROJECT:
        return
    path = _changed_file(session)
    try:
        polluted = path is not None and RESERVED_URL in path.read_text("utf-8")
    except (OSError, ValueError):
        return
    if polluted and path is not None:
        from .restoring import Restoring

        Restoring(path, session.cache).end()


def _changed_file(session: Session) -> Path | None:
    """Return the file that `uv add` changes."""
    script = session.invocation.last("script")
    if script is not None:
        return session.place.cwd / script
    start = session.place.project.absolute()
    return next(
        (
            folder / "pyproject.toml"
            for folder in (start, *start.parents)
            if (folder / "pyproject.toml").is_file()
        ),
        None,
    )


def _with_shared_shim(session: Session, locked: str | None) -> int:
    """Let the shared shim stand in place of PyPI; what else the user names is used as it is."""
    key, subject = _key(session, None, locked)
    if key == HERE or (subject is not None and subject.platforms):
        raise ShimFailed(
            "a shared shim does not know this machine: it takes no floating lock, and no "
            "description that is too long for a URL (give it the platform file by name)"
        )
    environ = {**session.place.environ, "UV_DEFAULT_INDEX": session.wishes.shim + index_url(key)}
    return run_uv([session.uv, *session.invocation.arguments], environ)


def _told(session: Session, plan: Plan, subject: Subject | None) -> dict[str, Any]:
    from .told import told_index

    scalars = plan.configuration.scalars
    place, invocation = session.place, session.invocation
    keyring = (
        invocation.last("keyring-provider")
        or place.environ.get("UV_KEYRING_PROVIDER")
        or scalars.get("keyring-provider")
    )
    insecure = invocation.values("allow-insecure-host")
    insecure += place.environ.get("UV_INSECURE_HOST", "").split()
    configured = scalars.get("allow-insecure-host")
    insecure += configured if isinstance(configured, list) else []
    return {
        "upstreams": [told_index(index) for index in plan.indexes.values()],
        "only": {name: sorted(projects) for name, projects in plan.only.items()},
        "cache": str(session.cache),
        "platforms": {name: str(path) for name, path in subject.platforms.items()}
        if subject
        else {},
        "floating": {HERE: subject.key} if subject and session.scope is Scope.PROJECT else {},
        "hosts": [RESERVED_HOST],
        "insecure_hosts": insecure,
        "keyring": keyring == "subprocess",
        "compress": False,
        "access_log": False,
        "forward": True,
    }


def _own_cache(session: Session, plan: Plan, subject: Subject) -> Path:
    """Return a cache of uv's for what a floating name means on this machine.

    uv caches wheels by index and filename, and asks nobody again: under a floating name those are
    the same for every variant.
    """
    import hashlib

    directory = cache_directory(
        session.place.environ,
        session.invocation.last("cache-dir"),
        plan.configuration.scalars.get("cache-dir"),
        session.place.cwd,
    ).absolute()
    return directory / "variants" / hashlib.sha256(subject.key.encode()).hexdigest()[:16]


def proxied(environ: Mapping[str, str], port: int, token: str, plan: Plan) -> dict[str, str]:
    """Return the variables with which uv finds `RESERVED_HOST`, and everything else as before."""
    from urllib.parse import urlsplit

    proxy = f"http://{USERNAME}:{token}@127.0.0.1:{port}"
    changes = {"HTTP_PROXY": proxy, "http_proxy": proxy}
    exempt = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    if exempt.strip() == "*":
        exempt = ""
        changes.update(dict.fromkeys(("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"), ""))
    if not any(environ.get(name) for name in _PROXIES) or "" in changes.values():
        # Nobody stands between uv and those hosts, and nobody need.
        hosts = [
            urlsplit(index.url).hostname or ""
            for index in plan.indexes.values()
            if index.url.startswith("http://")
        ]
        exempt = ",".join(filter(None, (exempt, "localhost,127.0.0.1,::1", *sorted(set(hosts)))))
    if exempt:
        changes.update(NO_PROXY=exempt, no_proxy=exempt)
    if sys.platform in ("darwin", "win32") and not any(
        environ.get(name) for name in (*_PROXIES, "HTTPS_PROXY", "https_proxy")
    ):
        # Once a variable is set, uv no longer looks at what the system is set to.
        import urllib.request

        system = urllib.request.getproxies().get("https")
        if system:
            changes["HTTPS_PROXY"] = system
    return changes
