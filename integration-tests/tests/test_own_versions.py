"""A version that an index of the user has comes from there, whatever builds other indexes have.

Each world is a company's index and a public one, in both orders and with the company's files in a
place for ``--find-links``; every client gets the same of it, but for the rule of its indexes.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.catalog_places import numbered_entry
from support.choices import by_resolve
from support.environments import Environment
from support.index import Index
from support.pip_commands import dry_run
from support.projects import DRIVER
from support.uvs import Machine, project
from support.wheels import Wheel

PLACEHOLDER, BUILD_FIRST = 'placeholder = "<1"\n', "before-version = true\n"
MERGED = "unsafe-best-match"
LINKS = "find-links"


@dataclass(frozen=True)
class World:
    """Versions of a project, and what is taken of them.

    Attributes:
        internal: versions on the company's index.
        public: those on the public index.
        builds: those that the public index has of a build of another name.
        merged: what is taken where all indexes count together, or the company's is asked first.
        after_public: what is taken where the public index alone counts, if it has the project.
        more: lines of the entry.
    """

    internal: tuple[str, ...]
    public: tuple[str, ...]
    builds: tuple[str, ...]
    merged: str
    after_public: str
    more: str = ""


WORLDS = {
    "the builds alone": World(("3.0",), (), ("2.0", "3.0", "99.0"), "3.0", "3.0"),
    "a placeholder": World(("3.0",), ("0.1",), ("3.0", "99.0"), "3.0", "0.1", PLACEHOLDER),
    "older builds": World(("3.0",), ("0.1",), ("2.0",), "3.0", "0.1", PLACEHOLDER + BUILD_FIRST),
    "an older release": World(("3.0",), ("2.0",), ("2.0",), "3.0", "2.0-cuda13", BUILD_FIRST),
    "a placeholder alone": World((), ("0.1",), ("9.0",), "9.0-cuda13", "9.0-cuda13", PLACEHOLDER),
    "one publisher": World((), ("2.0", "3.0"), ("2.0",), "2.0-cuda13", "2.0-cuda13", BUILD_FIRST),
}
ORDERS = ("internal", "public", LINKS)
"""What is asked first of the two indexes, or where the company's files are."""

UVS = ("first-index", "unsafe-first-match", MERGED)
CLIENTS = ("pip", "pip lock", *("resolve " + each for each in (UVS[0], MERGED)),
           *("uv " + each for each in UVS), "uv lock")  # fmt: skip
SAMPLED = {
    ("a placeholder", "public", "uv first-index"),
    ("an older release", "public", f"uv {MERGED}"),
    ("a placeholder", LINKS, "uv first-index"),
    ("the builds alone", "public", "uv lock"),
    ("a placeholder", "public", "resolve first-index"),
    ("an older release", "internal", f"resolve {MERGED}"),
}
"""Of the clients that take seconds."""


def _cases() -> Iterator[object]:
    for case in itertools.product(WORLDS, ORDERS, CLIENTS):
        is_run = case[2] == "pip" or case in SAMPLED
        yield pytest.param(*case, marks=[] if is_run else [pytest.mark.nightly], id="-".join(case))


@dataclass(frozen=True)
class Places:
    """The two indexes in one order.

    Attributes:
        first, second: URLs of indexes; one alone is both.
        links: URL of a page for ``--find-links``, empty without.
        catalog: path of the catalogue.
        folder: for files.
    """

    first: str
    second: str
    links: str
    catalog: str
    folder: Path

    def options(self, main: str, extra: str) -> list[str]:
        """Return pip's options, with the index *main* and beside it *extra*."""
        more = ["--find-links", self.links] if self.links else []
        more += ["--extra-index-url", extra] if extra != main else []
        return ["-i", main, *more, "--variant-catalog", self.catalog]


def by_pip(places: Places, pip: Environment, _: Machine, how: str) -> str:
    options = places.options(places.first, places.second)[2:]
    if how != "lock":
        done = dry_run(pip, Index(url=places.first), *options, "rmm", **{DRIVER: "13.0"})
        return done.out.splitlines()[-1].split()[-1].removeprefix("rmm-")
    path = places.folder / "pylock.toml"
    done = pip.pip(
        "lock", "-i", places.first, *options, "-o", str(path), "rmm", env={DRIVER: "13.0"}
    )
    if "unknown command" in done.err:
        pytest.skip("this pip writes no lock files")
    return _published(path.read_text("utf-8"))


def by_variants(places: Places, _: Environment, __: Machine, how: str) -> str:
    # The main index comes last where the first one counts.
    asked = places.options(places.second, places.first)
    platform = ("--variant-platform", "cuda=13.0,sm=9.0")
    (found,) = by_resolve(places.folder, "rmm", *asked, "--index-strategy", how, *platform)
    (package,) = found["packages"]
    return "-".join(filter(None, (package["version"], package["label"])))


def by_uv(places: Places, _: Environment, machine: Machine, how: str) -> str:
    settings = {
        "UV_INDEX": places.first if places.first != places.second else "",
        "UV_DEFAULT_INDEX": places.second,
        "UV_FIND_LINKS": places.links,
        "UV_INDEX_STRATEGY": how if how in UVS else "",
        "UV_PYTHON": sys.executable,
        "VARIANTS_CATALOG": places.catalog,
        DRIVER: "13.0",
    }
    machine = machine.with_environ(settings)
    if how == "lock":
        project(machine.work, ["rmm"])
        done = machine.run("lock")
        assert done.code == 0, done
        return _published((machine.work / "uv.lock").read_text("utf-8"))
    machine.create_environment(sys.executable)
    done = machine.run("pip", "install", "--dry-run", "rmm")
    (version,) = re.findall(r"\+ rmm==(\S+)", done.err)
    return f"{version}-cuda13" if f"Variant cuda13 for rmm {version}" in done.err else version


def _published(lock: str) -> str:
    """Return the one version of a lock, and whether the file is a build of another name."""
    ((name, version),) = set(re.findall(r"/(rmm|rmm_cu13)-([0-9.]+)-(?:0_cuda13-)?py3", lock))
    return f"{version}-cuda13" if name != "rmm" or "/.variant/cuda13/" in lock else version


CLIENT: dict[str, Callable[[Places, Environment, Machine, str], str]] = {
    "pip": by_pip, "resolve": by_variants, "uv": by_uv,
}  # fmt: skip


@pytest.mark.one
@pytest.mark.parametrize(("world", "order", "client"), [*_cases()])
def test_from_where(
    world: str,
    order: str,
    client: str,
    patched: Environment,
    machine: Machine,
    serve: Callable[[Index], Index],
    tmp_path: Path,
) -> None:
    known = WORLDS[world]
    internal, public = serve(Index(metadata_hashes=True)), serve(Index(metadata_hashes=True))
    for index, name, versions in (
        (internal, "rmm", known.internal),
        (public, "rmm", known.public),
        (public, "rmm-cu13", known.builds),
    ):
        for version in versions:
            index.add_wheel(Wheel(name, version))
    text = numbered_entry("rmm", "rmm-cu{}=={{version}}")
    path = tmp_path / "rmm.toml"
    path.write_text(text.replace("coherent", f"{known.more}coherent"), encoding="utf-8")
    links = internal.links_url if order == LINKS else ""
    urls = (internal.url, public.url)
    first, second = (public.url,) * 2 if links else urls if order == "internal" else urls[::-1]
    places = Places(first, second, links, str(path), tmp_path)
    program, _, how = client.partition(" ")
    is_first = order == "public" and client not in ("pip", "pip lock", f"{program} {MERGED}")
    expected = known.after_public if is_first else known.merged
    assert CLIENT[program](places, patched, machine, how) == expected
