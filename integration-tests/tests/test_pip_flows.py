"""Every way to a wheel, on every pip: with variants, without them, and with broken metadata.

`FLOWS` is the table. Each flow runs three times: where there are variants, it ends as it says;
where there are none, it ends as it does without the shim, byte for byte; where their metadata is
broken, it ends with the non-variant wheel and one warning.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.environments import PIPS, Environment, Environments, Result
from support.pip_commands import comparable
from support.pip_worlds import KINDS, World, world
from support.projects import CUDA_12_8

GPU = "always-1.0 app-1.0-cu128 for-128-1.0 for-cu128-1.0 for-gpu-1.0"
CPU = "always-1.0 app-1.0 for-cpu-1.0"
WOULD = "Would install "
DRY = "install --dry-run "


@dataclass(frozen=True)
class Flow:
    """One way to a wheel.

    Attributes:
        command: the command line; capital words are places of the world, ``OUT`` a new folder.
        expected: what it prints where there are variants; a file, if it begins with ``OUT``.
        otherwise: the same where there are none, or none that can be used.
        since: the oldest pip that knows it.
        code: its exit code.
        same: where there are no variants it ends as without the shim.
        warns: broken metadata costs a warning.
    """

    command: str
    expected: str = WOULD + GPU
    otherwise: str = WOULD + CPU
    since: str = "24.0"
    code: int = 0
    same: bool = True
    warns: bool = True


def installed(places: str) -> dict[str, str]:
    """Return what tells where an installation went."""
    return {
        "expected": f"{places}/app-1.0.dist-info/variant.json",
        "otherwise": f"{places}/app-1.0.dist-info/RECORD",
    }


def collected(label: str) -> dict[str, str]:
    """Return what tells which wheel was downloaded."""
    return {
        "expected": f"OUT/app-1.0-py3-none-any-{label}.whl",
        "otherwise": "OUT/app-1.0-py3-none-any.whl",
    }


FLOWS = {
    "index": Flow(DRY + "-i INDEX app"),
    "HTML index": Flow(DRY + "-i HTML app"),
    "index with credentials": Flow(DRY + "-i SECRET app"),
    "directory": Flow(DRY + "--no-index --find-links LINKS app"),
    "page of links": Flow(DRY + "--no-index --find-links PAGE app"),
    "local file": Flow(DRY + "-i INDEX WHEEL", warns=False),
    "URL": Flow(DRY + "-i INDEX URL", warns=False),
    "requirements file": Flow(DRY + "-i INDEX -r FOLDER/requirements.txt"),
    "constraints file": Flow(DRY + "-i INDEX -c FOLDER/constraints.txt app"),
    "constraint to a URL": Flow(DRY + "-i INDEX -c FOLDER/url.txt app", warns=False),
    "hashes": Flow(
        DRY + "-i INDEX --require-hashes -r FOLDER/hashes.txt",
        "app-1.0-cu128 for-128-1.0 for-cpu-1.0",
        "app-1.0 for-128-1.0 for-cpu-1.0",
    ),
    "only wheels": Flow(DRY + "-i INDEX --only-binary :all: app"),
    "no wheels": Flow(
        DRY + "-i INDEX --no-binary app app", WOULD + "app-0.5", WOULD + "app-0.5", warns=False
    ),
    "wheels preferred": Flow(
        DRY + "-i INDEX --prefer-binary late", WOULD + "late-1.0-cu128", WOULD + "late-1.0",
        warns=False,
    ),
    "prereleases": Flow(
        DRY + "-i INDEX --pre early", WOULD + "early-2.0rc1-cu128", WOULD + "early-2.0rc1",
        warns=False,
    ),
    "uploaded before": Flow(
        DRY + "-i INDEX --uploaded-prior-to 2025-01-01 late", WOULD + "late-1.0-cu128",
        WOULD + "late-1.0", since="26.0.1", warns=False,
    ),
    "target": Flow("install --target OUT -i INDEX app", **installed("OUT")),
    "root": Flow("install --root OUT -i INDEX app", **installed("OUT/**")),
    "upgrade of everything": Flow(DRY + "--upgrade --upgrade-strategy eager -i INDEX app"),
    "extras": Flow(DRY + "-i INDEX app[more]", f"{WOULD}{GPU} more-1.0", f"{WOULD}{CPU} more-1.0"),
    "editable": Flow(
        DRY + "-i INDEX -e FOLDER/local", f"{WOULD}{GPU} local-1.0", f"{WOULD}{CPU} local-1.0"
    ),
    "build requirement": Flow(
        DRY + "-i INDEX built", WOULD + "built-1.0", WOULD + "built-1.0", warns=False
    ),
    "lazy wheels": Flow(DRY + "-i INDEX --use-feature=fast-deps app"),
    "another Python": Flow("--python OTHER " + DRY + "-i INDEX app"),
    "report": Flow(
        DRY + "--quiet --report - -i INDEX app", '"variant_label": "cu128"', '"name": "app"'
    ),
    "download": Flow("download -d OUT -i INDEX app", **collected("cu128")),
    "download for another machine": Flow(
        "download -d OUT -i INDEX --platform win_amd64 --python-version 3.11 --implementation cp "
        "--abi cp311 --only-binary=:all: app",
        **collected("null"),
    ),
    "download for a machine like that": Flow(
        "download -d OUT -i INDEX --platform win_amd64 --only-binary=:all: "
        "--variant-platform cuda=12.7 app",
        **collected("cu126"), same=False,
    ),
    "wheel": Flow("wheel -w OUT -i INDEX app", **collected("cu128")),
    "lock": Flow(
        "lock -o - -i INDEX app", "[packages.variants-json", "app-1.0-py3-none-any.whl",
        since="25.1.1",
    ),
    "lock file": Flow(
        DRY + "--no-deps -r FOLDER/pylock.toml", WOULD + "app-1.0-cu128", WOULD + "app-1.0",
        since="26.1.2",
    ),
    "versions": Flow("index versions -i INDEX app", "app (1.0)", "app (1.0)", warns=False),
    "no variants": Flow(
        DRY + "--no-variants -i INDEX app", WOULD + CPU, warns=False, same=False
    ),
    "legacy resolver": Flow(
        DRY + "--use-deprecated=legacy-resolver -i INDEX app", WOULD + CPU, warns=False
    ),
    "nothing of that name": Flow(DRY + "-i INDEX absent", "", "", code=1, warns=False),
}  # fmt: skip


PLAIN = """
install --dry-run -i INDEX left right
install --dry-run -i INDEX root pulled==2.0
install --dry-run -i INDEX root==7
install --dry-run -i INDEX conflicting
install --dry-run -i INDEX early
install --dry-run -i INDEX pulled
install --dry-run -i INDEX modern
install --dry-run -i INDEX elsewhere
install --dry-run -i INDEX damaged
install --dry-run -i INDEX malformed
install --dry-run -i INDEX a=b
install --dry-run -i INDEX -r FOLDER/requirements.txt -c FOLDER/constraints.txt left
download -d OUT -i INDEX root
wheel -w OUT -i INDEX root==0.9
install --dry-run --quiet --report - -i INDEX extra
install --dry-run --no-such-option root
index versions -i INDEX left
instal left
check
"""
"""Backtracking, versions and files that may not be taken, what is no name, and mistakes."""


@pytest.fixture(scope="module")
def worlds(tmp_path_factory) -> Iterator[dict[str, World]]:
    """Serve the worlds, by kind."""
    with ExitStack() as stack:
        yield {
            kind: stack.enter_context(world(kind, tmp_path_factory.mktemp(kind))) for kind in KINDS
        }


@pytest.fixture
def other(environments: Environments, available) -> str:
    """Another environment of that Python, without any pip."""
    return environments.plain(available.python, None).python


@pytest.fixture
def run(worlds, other, tmp_path):
    """Run a command in a world of a kind, with a new folder ``OUT``."""

    def run(environment: Environment, kind: str, command: str, **env: str) -> Result:
        out = tmp_path / "out"
        shutil.rmtree(out, ignore_errors=True)
        worlds[kind].index.requests.clear()
        places = {**worlds[kind].places, "OTHER": other, "OUT": str(out)}
        words = [
            re.sub(r"\b([A-Z]{3,})\b", lambda match: places.get(match[1], match[1]), word)
            for word in command.split()
        ]
        return environment.pip(*words, env={**CUDA_12_8, **env})

    return run


@pytest.fixture
def both(run, plain, patched, worlds):
    """Run a command without the shim and with it; return both results, with the requests."""

    def both(kind: str, command: str, environments=(plain, patched), **env: str):
        for environment in environments:
            done = comparable(run(environment, kind, command, **env), ENV=str(environment.path))
            yield done, list(worlds[kind].index.requests)

    return both


def ends_otherwise(done: Result, flow: Flow, expected: str, out: Path) -> bool:
    """Return whether a flow ended in another way than *expected*."""
    if done.code != flow.code or "Traceback" in done.err:
        return True
    if expected.startswith("OUT/"):
        return not list(out.glob(expected[4:]))
    return (f"{expected}\n" if expected.startswith(WOULD) else expected) not in done.out


@pytest.fixture
def flows(available) -> dict[str, Flow]:
    """The flows that the pip knows."""
    age = PIPS.index
    return {name: flow for name, flow in FLOWS.items() if age(available.pip) >= age(flow.since)}


@pytest.mark.matrix
def test_with_variants(patched, flows, run, tmp_path):
    wrong = {}
    for name, flow in flows.items():
        done = run(patched, "variants", flow.command)
        if ends_otherwise(done, flow, flow.expected, tmp_path / "out"):
            wrong[name] = done
    assert not wrong, show(wrong)


@pytest.mark.everywhere
def test_with_broken_metadata(patched, flows, run, tmp_path):
    """One warning, and it goes on without variants."""
    wrong = {}
    for name, flow in flows.items():
        done = run(patched, "broken", flow.command)
        warnings = len(re.findall("(?i)variant wheels", done.err))
        otherwise = ends_otherwise(done, flow, flow.otherwise, tmp_path / "out")
        if otherwise or warnings != flow.warns:
            wrong[name] = done
    assert not wrong, show(wrong)


@pytest.mark.everywhere
def test_without_variants(flows, both, tmp_path):
    """Nothing differs from what happens without the shim: results, output, requests."""
    wrong = {}
    for name, flow in flows.items():
        if flow.same:
            theirs, ours = both("plain", flow.command)
            otherwise = ends_otherwise(ours[0], flow, flow.otherwise, tmp_path / "out")
            if otherwise or ours != theirs:
                wrong[name] = theirs, ours
    for command in PLAIN.strip().splitlines():
        theirs, ours = both("plain", command)
        if ours != theirs:
            wrong[command] = theirs, ours
    assert not wrong, show(wrong)


@pytest.mark.everywhere
def test_no_variants_is_as_if_there_were_none(both):
    """With --no-variants pip does what an unpatched one does; the legacy resolver always does."""
    command = DRY + "-i INDEX --only-binary :all: late"
    for name in ("PIP_NO_VARIANTS", "VARIANTS_NO_VARIANTS"):
        theirs, ours = both("variants", command, **{name: "1"})
        assert ours == theirs
        assert "Would install late-1.0\n" in ours[0].out
    theirs, ours = both("variants", f"{command} --use-deprecated=legacy-resolver")
    assert (ours[0].out, ours[0].err) == (theirs[0].out, "")


def test_same_installation(environments, available, both, tmp_path):
    """What is on disk after installing is the same, too."""
    copies = [
        make(available.python, available.pip).copied(tmp_path / name)
        for name, make in (("none", environments.plain), ("shim", environments.patched))
    ]
    theirs, ours = both("plain", "install -i INDEX root malformed==1.0", copies)
    assert ours == theirs
    without, shim = (copy.files(str(copy.site_packages)) for copy in copies)
    assert "root/__init__.py" in without
    theirs = {name: data for name, data in shim.items() if not name.startswith("pep_variants")}
    assert theirs == without
    theirs, ours = both("plain", "uninstall -y root left", copies)
    assert ours == theirs


def show(wrong: dict[str, object]) -> str:
    """Return results by flow, legibly."""
    return "".join(f"\n=== {name}\n{text}" for name, text in wrong.items())
