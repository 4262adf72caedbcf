"""The newest release that uses the GPU, of a project that only another project requires.

uv orders releases itself: it is shown newer ones without a build as yanked, and runs without that
where something requires one of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from itertools import product
from typing import NamedTuple

import pytest

from support.index import Index
from support.projects import DRIVER, cuda
from support.uvs import Machine, project
from support.wheels import Release, Wheel

TOLD = "Using app 1.0 (cu128), the newest release with a build for this GPU, not 2.0: "
REFUSED = "found no solution with {}<=1.0, for a build that uses the accelerator; running it"
UPGRADED = (
    "uv took older releases with app<=1.0, for a build that uses the accelerator; "
    "upgraded: app 2.0, turning 2.0"
)


class Form(NamedTuple):
    """A command that has `app` resolved, of `user` or the like.

    Attributes:
        command: of uv-variants.
        shows: prints what was taken.
        names: the command names what requires `app`; else the project depends on it.
    """

    command: str
    shows: str
    names: bool = True


EXPORT, LIST = "export --frozen --no-hashes", "pip list --python .venv --format=freeze"
FORMS = (
    Form("pip install --python .venv", LIST),
    Form("add", EXPORT),
    Form("lock", EXPORT, names=False),
    Form("lock --upgrade", EXPORT, names=False),
    Form("sync", LIST, names=False),
)


@pytest.fixture
def person(machine: Machine, serve: Callable[[Index], Index]) -> Machine:
    """A person with a driver for CUDA 12.8, which the newest `app` is not for."""
    index = Index()
    for name, version, driver in (
        ("app", "1.0", "12.8"),
        ("app", "2.0", "13.0"),
        ("lib", "1.0", "12.8"),
        ("lib", "2.0", "13.0"),
        ("lib", "3.0", "12.8"),
    ):
        index.add_release(Release(name, version, cuda(driver)), metadata_file=True)
    for name, *releases in (
        ("user", "app"),
        ("pinning", "app==2.0"),
        ("ranging", "app>=2.0"),
        ("turning", "app", "app==2.0"),
        ("between", "lib==2.0"),
    ):
        for number, requirement in enumerate(releases, 1):
            index.add_wheel(Wheel(name, f"{number}.0", requires=(requirement,)))
    url = serve(index).url
    own = {"UV_DEFAULT_INDEX": url, "UV_PYTHON": sys.executable, DRIVER: "12.8"}
    return machine.with_environ({**own, "VARIANTS_BEFORE_VERSION": "app,lib"})


CASES = {
    "user": ("app==1.0", TOLD),
    "pinning": ("app==2.0", REFUSED.format("app")),
    "ranging": ("app==2.0", REFUSED.format("app")),
    "turning": ("app==2.0", UPGRADED),
    "between": ("lib==2.0", REFUSED.format("lib")),
}
"""By project: what it gets, and what is said."""
SAMPLE = ((0, "user"), (0, "turning"), (1, "turning"), (2, "between"), (3, "user"), (4, "ranging"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run some of the forms and cases, in ``make test-matrix`` each with each."""
    if "form" in metafunc.fixturenames:
        some: Iterable[tuple[int, str]] = SAMPLE
        if metafunc.config.getoption("full_matrix"):
            some = product(range(len(FORMS)), CASES)
        metafunc.parametrize(("form", "name"), [(FORMS[number], name) for number, name in some])


def test_a_build_goes_first(person: Machine, form: Form, name: str) -> None:
    wanted, said = CASES[name]
    project(person.work, [] if form.names else [name])
    person.plain("venv", "--clear", "--quiet")
    for text in (said, ""):
        done = person.run(*form.command.split(), *([name] if form.names else []))
        assert done.code == 0, done
        shown = person.plain(*form.shows.split()).out
        assert wanted in shown, (done, shown)
        assert f"{name}=={2 if name == 'turning' else 1}.0" in shown, (done, shown)
        for each in {TOLD, UPGRADED, REFUSED.format("app"), REFUSED.format("lib")}:
            assert (each in done.err) == (each == text), done
        if "--upgrade" in form.command:
            return  # else what is there stays


def test_a_lock_stays(person: Machine) -> None:
    project(person.work, ["user"])
    for command, app in (
        ("--variant-before-version=:none: lock", "2.0"),
        ("lock", "2.0"),
        ("sync", "2.0"),
        ("lock --upgrade-package app", "1.0"),
    ):
        done = person.run(*command.split())
        assert done.code == 0, done
        lock = (person.work / "uv.lock").read_text()
        assert f'name = "app"\nversion = "{app}"' in lock, done
        assert "running it without" not in done.err, done
