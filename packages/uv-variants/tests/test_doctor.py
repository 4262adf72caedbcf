"""The doctor's judgement of what is installed and locked."""

from pathlib import Path

import pytest
from packaging.version import Version

from pep_variants.choose.rejections import Advice
from pep_variants.internal import Installed
from pep_variants.model.platform import Platform
from uv_variants.doctor import examination
from uv_variants.doctor.examination import (
    IndexAnswers,
    installed_problems,
    locked_items,
    locked_problems,
    states_of,
)
from uv_variants.uv_lock import Lock, LockMachine
from variants_index.doctor.packages import BEST, UNKNOWN, WITHOUT, State

INDEX = "https://x/simple"


def item(name, version, label):
    """Return what is installed, from a wheel for all systems."""
    found = Installed(name, Version(version), label)
    found.__dict__["tags"] = frozenset(("py3-none-any",))
    return found


def report(*versions):
    return {"versions": [{"notices": [], "problems": [], **each} for each in versions]}


def answers(chosen="cu126", why="best of all", **verdicts):
    rows = [
        {"label": label, "verdict": verdict, "why": f"because of {label}"}
        for label, verdict in verdicts.items()
    ]
    files = {"gpu-2.0-py3-none-any.whl": chosen}
    version = {"version": "2.0", "files": files, "variants": rows, "why": why}
    return IndexAnswers({"gpu": report(version)}, {})


@pytest.mark.parametrize(
    ("label", "fits", "now", "verdict"),
    [
        ("cu126", True, "cu126", BEST),
        ("cu128", False, "cu126", "does not fit: because of cu128"),
        ("null", True, "cu126", "another fits better: because of cu126"),
        ("gone", None, "cu126", "the index has no variant gone of it any more"),
        (None, True, "cu126", "another fits better: because of cu126"),
    ],
)
def test_installed(label, fits, now, verdict):
    known = answers(cu126="chosen", cu128="rejected", null="compatible")
    (state,) = states_of([item("gpu", "2.0", label)], known)
    assert (state.fits, state.now, state.verdict) == (fits, now, verdict)
    assert (state.advice is None) == (label in ("cu126", "gone"))
    assert state.row == (
        "gpu 2.0",
        f"{label or '(no variant)'}: {verdict}" + ("; now cu126" if state.advice else ""),
    )


def test_plain_projects_are_of_no_interest():
    nothing = IndexAnswers({}, {})
    assert states_of([item("plain", "1.0", None)], nothing) == []
    known = answers("null", null="chosen")
    assert states_of([item("gpu", "2.0", None)], known) == []


@pytest.mark.parametrize(("version", "verdict"), [("3.0", UNKNOWN), ("2.0", WITHOUT)])
def test_versions_without_verdicts(version, verdict):
    empty = {"version": "2.0", "files": {}, "variants": []}
    known = IndexAnswers({"gpu": report(empty)}, {})
    (state,) = states_of([item("gpu", version, "a")], known)
    assert state.fits is None
    assert verdict in (state.verdict, WITHOUT)


def lock(*names):
    urls = [f"{INDEX}/gpu/.variant/{label}/{name}" for label, name in names]
    files = "".join(f'    {{ url = "{url}", hash = "sha256:0" }},\n' for url in urls)
    return Lock(text=f'[[package]]\nname = "gpu"\nversion = "2.0"\nwheels = [\n{files}]\n')


def test_only_what_is_locked_for_this_platform(monkeypatch):
    monkeypatch.setattr(examination, "host_target", lambda: "linux-x86_64")
    text = lock(
        ("cu128", "gpu-2.0-0_cu128-cp313-cp313-manylinux_2_28_x86_64.whl"),
        ("null", "gpu-2.0-0_null-cp313-cp313-win_amd64.whl"),
    )
    (state,) = states_of(locked_items(text), answers(cu126="chosen", cu128="rejected"))
    assert (state.label, state.fits) == ("cu128", False)
    (problem,) = locked_problems([state], None)
    assert problem.text == (
        "gpu 2.0 is locked as variant cu128, which does not fit this machine (because of cu128); "
        "variant cu126 does"
    )
    assert problem.command == "uv-variants --variant-platform native lock && uv-variants sync"
    # V6: nothing is advised that changes a lock for another machine.
    other = LockMachine(Path("uv.variants.toml"), Platform(), "linux-x86_64", "h100-zen4")
    (hint,) = locked_problems([state], other)
    assert hint.text.startswith(f"{problem.text}; the lock is for h100-zen4, --variant-platform")
    assert hint.command == ""


@pytest.mark.parametrize(
    ("has_lock", "command"),
    [(True, "uv-variants sync"), (False, "uv-variants --variant-switch pip install gpu==2.0")],
)
def test_what_to_type(has_lock, command):
    advice = Advice("cu128", "cu126", ("no",), "")
    installed = State("gpu", "2.0", "cu128", "cu126", "no", False, advice)
    locked = State("gpu", "2.0", "cu126", "cu126", "yes", True)
    (problem,) = installed_problems([installed], [locked] if has_lock else [])
    assert (problem.command, problem.code) == (command, "stale-variant")
    # Else it is the lock's problem.
    assert list(installed_problems([installed], [installed])) == []


def test_what_is_locked_may_be_a_decision():
    advice = Advice("cu126", "cu128", (), "newer")
    state = State("gpu", "2.0", "cu126", "cu128", "", True, advice)
    (locked,) = locked_problems([state], None)
    (installed,) = installed_problems([state], [])
    assert (locked.code, locked.fails) == ("better-variant", False)
    assert (installed.code, installed.fails) == ("better-variant", True)


@pytest.mark.parametrize(
    ("chosen", "why", "missed"),
    [
        ("cu126", "because of cu126; cu128 needs more", "cu128 needs more"),
        ("null", "no other variant fits (no NVIDIA driver found)", "no NVIDIA driver found"),
        ("cu126", "because of cu126", ""),
        ("cu126", "asked for", ""),
    ],
)
def test_what_is_missed(chosen, why, missed):
    known = answers(chosen, why, **{chosen: "chosen", "cu128": "rejected"})
    states = states_of([item("gpu", "2.0", chosen)], known)
    problems = list(installed_problems(states, []))
    assert [problem.text.partition("machine: ")[2] for problem in problems] == (
        [missed] if missed else []
    )
    assert all(problem.code == "unfit-variants" for problem in problems)
