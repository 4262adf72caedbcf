"""What `uv-variants` says beside uv: why nothing fits, and what was passed over.

What every client has to say of ``pip install`` is in the corpus.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest

from support.index import Index
from support.projects import DRIVER, cuda
from support.uvs import Machine, project
from support.wheels import NVIDIA, Release, Wheel, metadata

PYTHON = sys.executable


def app(*versions: tuple[str, str], plain: tuple[str, ...] = ()) -> Index:
    """Return an index with `app`: a variant for the CUDA version of each version, or none."""
    index = Index()
    for version, driver in versions:
        label = f"cu{driver.replace('.', '')}"
        tree = metadata(
            {label: {"nvidia": {"cuda_version_lower_bound": [driver]}}},
            namespaces=["nvidia"],
            providers={"nvidia": NVIDIA},
        )
        index.add_release(Release("app", version, tree), metadata_file=True)
    for version in plain:
        index.add_wheel(Wheel("app", version))
    return index


def unreadable() -> Index:
    index = app(("1.0", "12.8"), plain=("1.0",))
    index.add("app", "app-1.0-variants.json", b"{")
    return index


def newer_without_a_build() -> Index:
    """The newest has the null variant for this machine; `user` wants it."""
    index = app(("1.0", "12.8"))
    index.add_release(Release("app", "2.0", cuda("13.0")), metadata_file=True)
    index.add_wheel(Wheel("user", "1.0", requires=("app>=2.0", "app>=3; extra == 'x'")))
    return index


def builds_for_other_pythons() -> Index:
    """1.0 is for a newer Python, 0.9 has a wheel of an older one, 0.8.5 is yanked."""
    index = app(("1.0", "12.8"), ("0.8", "12.8"))
    for name in index.files["app"]:
        if "1.0-" in name:
            index.attributes[name] = {"requires-python": ">=3.40"}
    other = metadata(
        {"cu128": {"nvidia": {"cuda_version_lower_bound": ["12.8"]}}},
        namespaces=["nvidia"],
        providers={"nvidia": NVIDIA},
    )
    index.add_release(Release("app", "0.9", other, tags=("cp39-cp39-manylinux_2_17_x86_64",)))
    index.add_release(Release("app", "0.8.5", other))
    index.attributes.update(
        {name: {"yanked": "broken"} for name in index.files["app"] if "0.8.5-" in name}
    )
    index.add_release(Release("app", "2.0", cuda("13.0")), metadata_file=True)
    return index


class Remark(NamedTuple):
    """What commands say.

    Attributes:
        index: what they install from.
        commands: lines of uv-variants.
        said: each of these once.
        unsaid: none of these.
        fails: the exit code is not 0.
    """

    index: Callable[[], Index]
    commands: tuple[str, ...]
    said: tuple[str, ...] = ()
    unsaid: tuple[str, ...] = ()
    fails: bool = False


INSTALL = "pip install --python .venv"
RUN = "run --no-project --with app python -c 1"
OLDER = (
    "uv-variants: app 2.0: only the null variant fits this machine; 1.0 has variant cu128 "
    "(CUDA driver 12.8 or newer): to take it, require app==1.0\n"
)
REMARKS = {
    "metadata that cannot be read": Remark(
        unreadable,
        ("lock",),
        ("uv-variants: the variant wheels of app 1.0 are ignored: ",),
    ),
    "nothing fits": Remark(
        lambda: app(("1.0", "13.0"), ("0.9", "13.0")),
        ("lock", RUN),
        ("uv-variants: None of the variants of app 1.0 fits", "needs CUDA driver 13.0 or newer"),
        fails=True,
    ),
    "a release that is passed over": Remark(
        lambda: app(("2.0", "13.0"), plain=("1.0",)),
        ("add app",),
        ("app 2.0 was passed over: none of its variants fits",),
    ),
    "the output is the program's": Remark(
        lambda: app(("2.0", "13.0"), plain=("1.0",)), (RUN,), unsaid=("passed over",)
    ),
    "only what was asked for is passed over": Remark(
        lambda: app(("2.0", "13.0"), plain=("1.0",)),
        (f"{INSTALL} app<2",),
        unsaid=("uv-variants",),
    ),
    "an older release that would use the GPU": Remark(
        newer_without_a_build, (f"{INSTALL} --dry-run app", f"{INSTALL} app"), (OLDER,)
    ),
    "U10: but for another Python": Remark(
        builds_for_other_pythons,
        (f"{INSTALL} app", "lock"),
        (OLDER.replace("1.0", "0.8"),),
        ("app==1.0", "app==0.9", "app==0.8.5"),
    ),
    "where it is no help": Remark(
        newer_without_a_build, (f"{INSTALL} app>1",), ("Variant null for app 2.0",), ("to take it",)
    ),
    "K4: or another project excludes it": Remark(
        newer_without_a_build, (f"{INSTALL} user",), ("Variant null for app 2.0",), ("to take it",)
    ),
    "where what others require is not known": Remark(
        newer_without_a_build,
        (f"{INSTALL} --dry-run user", "lock user"),
        (f"{OLDER[:-1]}, unless another project excludes it\n",),
    ),
    "all variants are shown": Remark(
        newer_without_a_build,
        (f"{INSTALL} app",),
        ("up to 12.8) (-v shows every variant, --variant app=LABEL takes another one)\n",),
    ),
    "a forced variant is missed in the version that was asked for": Remark(
        lambda: app(("2.0", "12.8"), ("1.0", "12.6")),
        (f"--variant app=other {INSTALL} app==1.0",),
        ("uv-variants: app 1.0 has no variant 'other'", "there are: cu126"),
        fails=True,
    ),
}


@pytest.mark.parametrize("name", REMARKS)
def test_remarks(machine: Machine, serve: Callable[[Index], Index], name: str) -> None:
    remark = REMARKS[name]
    url = serve(remark.index()).url
    machine = machine.with_environ({DRIVER: "12.8", "UV_DEFAULT_INDEX": url, "UV_PYTHON": PYTHON})
    for command in remark.commands:
        command, _, wanted = command.partition(" ") if "lock" in command else (command, "", "")
        project(machine.work, [wanted or "app"] if command == "lock" else [])
        machine.plain("venv", "--clear", "--quiet")
        done = machine.run(*command.split())
        assert bool(done.code) == remark.fails, done
        assert [text for text in remark.said if done.err.count(text) != 1] == [], done
        assert [text for text in remark.unsaid if text in done.err] == [], done
