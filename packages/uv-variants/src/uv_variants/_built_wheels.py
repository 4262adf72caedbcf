"""The wheels that uv builds and keeps: what was built with variants is kept for these variants.

uv keeps one wheel of a source, whatever it was built with. A wheel that is compiled against a
variant of a build requirement may not work with another. So a file beside it says which variants
uv was shown when it was built, and a wheel for which uv would see others now is put aside, under a
name that uv does not read, until it fits again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from packaging.version import Version

from pep_variants import safe_files

from ._choices import Choices, label_for
from ._named_projects import normalized
from ._state import CommandState

_SUFFIX = ".variants.json"
"""Of the file ``.NAME.variants.json`` beside ``NAME.whl``: labels by version and project."""


class BuiltWheels:
    """The wheels that one command may find in uv's cache."""

    def __init__(self, state: CommandState) -> None:
        self._state, self._context, self._session = state, state.context, state.session
        self._choices = Choices(state.session)  # with what the session keeps by now
        self._before = self._files()

    def settle(self) -> list[str]:
        """Put in place what fits, and aside what does not.

        Returns:
            Projects (normalized names) that were built with one whose installed build changes.
        """
        found: dict[str, None] = {}
        notes = [path for path in self._before if path.name.endswith(_SUFFIX)]
        for path in notes if not self._context.is_offline else ():
            try:
                text = path.read_text("utf-8")
                shown = {name: {**versions} for name, versions in json.loads(text).items()}
            except (OSError, ValueError, TypeError, AttributeError):
                continue  # another process moves it, or it is damaged
            there = [str(self._state.installed.get(name)) for name in shown]
            mark = str((path.name, shown, there, self._session.kept(shown), self._context.catalog))
            if self._state.fitting.is_known(mark):
                continue
            self._choices.ask(shown)
            aside = f".{hashlib.sha256(text.encode()).hexdigest()[:16]}."
            is_aside, is_changed = aside in path.name, any(map(self._changes, shown))
            name = path.name.removeprefix(aside).lstrip(".").removesuffix(_SUFFIX)
            if is_changed:
                found[normalized(name.partition("-")[0])] = None
            if self._fits(shown) is is_aside:
                for each in (name, f"{name}.whl", f".{name}{_SUFFIX}", "metadata.msgpack"):
                    places = path.with_name(each), path.with_name(aside + each)
                    with suppress(OSError):
                        places[is_aside].replace(places[not is_aside])
            elif not is_changed:
                self._state.fitting.remember(mark)
        return [*found]

    def note(self) -> None:
        """Note what the wheels were built with that uv has built since."""
        new = [path for path, time in self._files().items() if self._before.get(path) != time]
        names = {*self._session.asked()} - {*self._session.plain_projects()} if new else set()
        self._choices.ask(names)
        shown = {name: each for name in sorted(names) if (each := self._usual(name))}
        for path in new if shown else ():
            if path.suffix == ".whl" and path.name[0] != ".":
                with (
                    suppress(OSError),
                    safe_files.replacing(path.with_name(f".{path.stem}{_SUFFIX}")) as note,
                ):
                    note.write(json.dumps(shown).encode())

    def _files(self) -> dict[Path, int]:
        """Return wheels and the files beside them, and when they were written."""
        found = {}
        for bucket in self._context.uv_caches.glob("*/sdists-v*"):
            for folder, folders, files in os.walk(bucket):
                folders[:] = {*folders} - {"src"} - {name.removesuffix(".whl") for name in files}
                wanted = (name for name in files if name.endswith((".whl", _SUFFIX)))
                for path in (Path(folder, name) for name in wanted):
                    with suppress(FileNotFoundError):  # another process moves it
                        found[path] = path.stat().st_mtime_ns
        return found

    def _shown(self, name: str) -> dict[str, list[str]]:
        return {
            version: sorted({label or "" for label in choice.labels.values()})
            for version, choice in self._choices.of(name).items()
        }

    def _usual(self, name: str) -> dict[str, list[str]]:
        """Return the labels of the versions that builds most likely take: newest, and locked."""
        now = self._shown(name)
        newest = next((each for each in now if not Version(each).is_prerelease), None)
        kept = self._session.kept([name])[0] or ()
        wanted = {newest, *(version.partition("+")[0] for version in kept)}
        return {version: labels for version, labels in now.items() if version in wanted}

    def _fits(self, shown: Mapping[str, Mapping[str, Sequence[str]]]) -> bool:
        """Return whether uv sees the same labels now, of the versions that there still are."""
        preferences = self._context.preferences
        for name, versions in shown.items():
            is_off = not preferences.use_variants or preferences.forced.get(name) == ""
            now = self._shown(name)
            if any(now.get(each, [""] if is_off else old) != old for each, old in versions.items()):
                return False
        return True

    def _changes(self, name: str) -> bool:
        """Return whether the installed build of a project is not what uv sees of its version."""
        lock, there = self._context.lock, self._state.installed.get(name)
        if there is None or (lock.text is not None and name not in lock.versions):
            return False  # what is not locked stays
        choice = self._choices.of_installed(there)
        if choice is None:
            return False
        return not self._choices.as_installed(there).is_variant(label_for(choice, there.tags))
