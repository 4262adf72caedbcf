"""Where there are no variants, pip with the shim is pip: same results, output and requests."""

from __future__ import annotations

import pytest

from support.index import Index
from support.pip_commands import comparable
from support.projects import app, cuda
from support.wheels import Release, SourceDistribution, Wheel


@pytest.fixture
def index(serve):
    """Plain projects, with everything that pip has an opinion on."""
    index = Index()
    for wheel in (
        Wheel("root", "1.0", requires=("left>=1", "right[more]>=1; python_version >= '3'")),
        Wheel("left", "1.0", requires=("shared<2",)),
        Wheel("left", "2.0", requires=("shared>=2",)),
        Wheel("right", "1.0", requires=("shared<2", "extra; extra == 'more'"), extras=("more",)),
        Wheel("shared", "1.0"),
        Wheel("shared", "1.5", build_tag="1local"),
        Wheel("shared", "1.5", build_tag="2local"),
        Wheel("shared", "2.0"),
        Wheel("extra", "1.0"),
        Wheel("conflicting", "1.0", requires=("left>=2", "right")),
        Wheel("early", "1.0.dev1"),
        Wheel("pulled", "1.0"),
        Wheel("pulled", "2.0"),
        Wheel("modern", "1.0"),
        Wheel("modern", "2.0"),
        Wheel("damaged", "1.0"),
        Wheel("elsewhere", "1.0", tag="cp30-cp30-win32"),
        Wheel("malformed", "1.0"),
        Wheel("malformed", "2.0", requires=("this is nothing",)),
    ):
        index.add_wheel(wheel)
    index.add("root", "root-0.9.tar.gz", SourceDistribution("root", "0.9").build())
    index.add("root", "root-not-a-version.whl", b"")
    index.add("root", "root-1.0-py3-none-any-BadLabel.whl", b"")
    index.add("root", "root-1.0-variants.json", b"{}")
    index.attributes["pulled-2.0-py3-none-any.whl"] = {"yanked": "it is <broken>"}
    index.attributes["modern-2.0-py3-none-any.whl"] = {"requires-python": ">=9"}
    index.wrong_hashes.add("damaged-1.0-py3-none-any.whl")
    index.add_release(Release("app", "1.0", cuda("12.8"), non_variant=True))
    index.add_release(app("2.0"))
    return serve(index)


@pytest.fixture
def same(plain, patched, index, tmp_path):
    """Run pip without and with the shim; return the result, which must be one and the same.

    Each gets a folder of its own, which is called OUT in its arguments.
    """

    def run(*args, environments=(plain, patched), **options):
        seen = []
        for number, environment in enumerate(environments):
            index.requests.clear()
            folder = str(tmp_path / str(number))
            done = environment.pip(*(arg.replace("OUT", folder) for arg in args), **options)
            done = comparable(done, ENV=str(environment.path), OUT=folder)
            seen.append((done, list(index.requests)))
        assert seen[0] == seen[1], args
        return done

    return run


@pytest.mark.everywhere
@pytest.mark.parametrize("wanted", [["root", "pulled==2.0"], ["conflicting"], ["absent"]])
def test_same_on_every_pip(same, index, wanted):
    same("install", "--dry-run", "-i", index.url, *wanted)


def test_same_commands(same, index, tmp_path):
    urls = ("-i", index.url)
    (tmp_path / "requirements.txt").write_text("left\n-c constraints.txt\n")
    (tmp_path / "constraints.txt").write_text("left<2\n")
    dry = ("install", "--dry-run", *urls)
    for command in (
        # Backtracking, versions that may not be taken, files that may not, and what is no name.
        (*dry, "left", "right"),
        (*dry, "root==7"),
        (*dry, "early"),
        (*dry, "pulled"),
        (*dry, "modern"),
        (*dry, "elsewhere"),
        (*dry, "damaged"),
        (*dry, "malformed"),
        (*dry, "what is this"),
        (*dry, "-r", str(tmp_path / "requirements.txt")),
        ("download", "-d", "OUT", *urls, "root"),
        ("wheel", "-w", "OUT", *urls, "root==0.9"),
        ("install", "--dry-run", f"{index.url[:-7]}files/extra/extra-1.0-py3-none-any.whl"),
        ("install", "--dry-run", "--quiet", "--report", "-", *urls, "extra"),
        ("install", "--dry-run", "--no-such-option", "root"),
        ("index", "versions", *urls, "left"),
        ("instal", "left"),
        ("check",),
    ):
        same(*command)


def test_same_installation(environments, available, same, index, tmp_path):
    """What is on disk after installing is the same, too."""
    copies = [
        make(available.python, available.pip).copied(tmp_path / name)
        for name, make in (("none", environments.plain), ("shim", environments.patched))
    ]
    wanted = ("install", "-i", index.url, "root", "malformed==1.0")
    assert "Successfully installed" in same(*wanted, environments=copies).out
    trees = [
        {
            name: path.read_bytes()
            for path in copy.site_packages.rglob("*")
            if path.is_file() and path.suffix != ".pyc"
            and not (name := str(path.relative_to(copy.site_packages))).startswith("pep_variants")
        }
        for copy in copies
    ]  # fmt: skip
    assert trees[0] == trees[1]
    same("uninstall", "-y", "root", "left", environments=copies)


def test_no_variants_is_as_if_there_were_none(plain, patched, same, index):
    """With --no-variants pip does what an unpatched one does; the legacy resolver always does."""
    install = ("install", "--dry-run", "-i", index.url)
    for wanted in ("app", "app==2.0"):
        for name in ("PIP_NO_VARIANTS", "VARIANTS_NO_VARIANTS"):
            done = same(*install, wanted, env={name: "1"})
            assert ("Would install app-1.0\n" in done.out) == (wanted == "app")
    legacy = (*install, "--use-deprecated", "legacy-resolver")
    same(*legacy, "root", "left")
    done = patched.pip(*legacy, "app")
    assert (done.out, done.err) == (plain.pip(*legacy, "app").out, "")
