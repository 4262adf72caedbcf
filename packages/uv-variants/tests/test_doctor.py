"""The doctor's judgement, and how it is printed."""

import pytest

from uv_variants.doctor.findings import File, Findings, Problem, VariantState
from uv_variants.doctor.text import lines
from uv_variants.doctor.variants import installed_problems, installed_states, locked_states
from uv_variants.locked_variants import Lock
from uv_variants.proxy_client import Verdict, VersionChoice
from uv_variants.site_packages import Installed

TAGS = frozenset(("py3-none-any",))


def choices(chosen="cu126", **verdicts):
    rows = [Verdict(label, verdict, f"because of {label}") for label, verdict in verdicts.items()]
    files = {"gpu-2.0-py3-none-any.whl": chosen}
    return {"gpu": {"2.0": VersionChoice(files, tuple(rows), (), (), why="best of all")}}


@pytest.mark.parametrize(
    ("label", "fits", "best"),
    [("cu126", True, "cu126"), ("cu128", False, "cu126"), ("null", True, "cu126"),
     ("gone", None, "cu126"), (None, True, "cu126")],
)  # fmt: skip
def test_installed(label, fits, best):
    known = choices(cu126="chosen", cu128="rejected", null="compatible")
    (state,) = installed_states([Installed("gpu", "2.0", label, TAGS)], known)
    assert (state.fits, state.best) == (fits, best)
    assert state.is_best == (label in ("cu126", "gone"))


def test_plain_projects_are_of_no_interest():
    assert installed_states([Installed("plain", "1.0", None, TAGS)], {}) == []
    known = choices("null", null="chosen")
    assert installed_states([Installed("gpu", "2.0", None, TAGS)], known) == []


def lock(*names):
    urls = [f"https://x/simple/gpu/.variant/{label}/{name}" for label, name in names]
    files = "".join(f'    {{ url = "{url}", hash = "sha256:0" }},\n' for url in urls)
    return Lock(text=f'[[package]]\nname = "gpu"\nversion = "2.0"\nwheels = [\n{files}]\n')


def test_only_what_is_locked_for_this_platform():
    text = lock(
        ("cu128", "gpu-2.0-0_cu128-cp313-cp313-manylinux_2_28_x86_64.whl"),
        ("null", "gpu-2.0-0_null-cp313-cp313-win_amd64.whl"),
    )
    (state,) = locked_states(text, "linux-x86_64", choices(cu126="chosen", cu128="rejected"))
    assert (state.label, state.fits, state.why) == ("cu128", False, "because of cu128")


@pytest.mark.parametrize(
    ("has_lock", "command"),
    [(True, "uv-variants sync"), (False, "uv-variants --variant-switch pip install gpu==2.0")],
)
def test_what_to_type(has_lock, command):
    installed = VariantState("gpu", "2.0", "cu128", False, "no", "cu126")
    locked = VariantState("gpu", "2.0", "cu126", True, "yes", "cu126")
    (problem,) = installed_problems([installed], [locked], has_lock=has_lock)
    assert problem.command == command
    assert installed_problems([installed], [installed], has_lock=True) == []  # the lock's problem


def test_the_report():
    found = Findings(
        versions={"uv-variants": "1", "uv": "2", "path": "/uv", "tested": False},
        installed=(VariantState("gpu", "2.0", "cu128", False, "old driver", "null", "that"),),
        caches=(File("uv", "/c", 1_500_000_000, False), File("x", "/d", 12)),
        problems=(Problem("bad", "do this"), Problem("could be better", fails=False)),
    )
    text = "\n".join(lines(found))
    assert text.startswith("problem: bad\n    do this\nhint: could be better\n\n")
    assert "uv           2, not tested, /uv" in text
    assert "  gpu 2.0  cu128: does not fit: old driver; now null: that" in text
    assert "uv: /c, more than 1.5 GB" in text
    assert "x: /d, 12 B" in text
    assert not found.is_well
    assert next(lines(Findings(versions={"path": ""}))) == "Everything fits this machine."
