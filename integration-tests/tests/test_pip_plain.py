"""Where there are no variants, pip with the shim is pip: same results, output and requests."""

from __future__ import annotations

import re

import pytest

from support.index import Index
from support.projects import app, cuda
from support.wheels import Release, SourceDistribution, Wheel


def an_index(**options):
    """Plain projects, with everything that pip has an opinion on."""
    index = Index(**options)
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
        Wheel("early", "1.0rc1"),
        Wheel("pulled", "1.0"),
        Wheel("pulled", "2.0"),
        Wheel("modern", "1.0"),
        Wheel("modern", "2.0"),
        Wheel("demanding", "1.0", requires_python=">=9"),
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
    return index


def same(plain, patched, index, *args, out=None, **options):
    """Run pip without and with the shim; return the result, which must be one and the same.

    Each gets a folder below *out* of its own, which is called OUT in *args*.
    """
    seen = []
    for number, environment in enumerate((plain, patched)):
        index.requests.clear()
        folder = f"{out}/{number}"
        done = environment.pip(*(arg.replace("OUT", folder) for arg in args), **options)
        texts = []
        for text in (done.out, done.err):
            text = text.replace(str(environment.path), "ENV").replace(folder, "OUT")
            # Old pips fall over broken metadata; what they fall over counts, not the way there.
            text = re.sub(
                r"(?ms)^Traceback .*?^(?=\S*(Error|Invalid\w+): )(?!.*^Traceback)", "", text
            )
            texts.append(re.sub(r"/tmp/pip-[\w-]+", "TEMP", text))
        seen.append((done.code, *texts, list(index.requests)))
    assert seen[0] == seen[1]
    return done


@pytest.mark.everywhere
@pytest.mark.parametrize("wanted", [["root", "pulled==2.0"], ["conflicting"], ["absent"]])
def test_same_on_every_pip(plain, patched, serve, wanted):
    index = serve(an_index())
    same(plain, patched, index, "install", "--dry-run", "-i", index.url, *wanted)


REQUIREMENTS = {
    "backtracking": "left right",
    "source distribution": "root==0.9",
    "no such version": "root==7",
    "prerelease alone": "early",
    "prerelease not wanted": "early<1.0rc1",
    "yanked": "pulled",
    "requires another python": "modern",
    "only for another python": "demanding",
    "no wheel for this platform": "elsewhere",
    "wrong hash": "damaged",
    "broken metadata": "malformed==2.0",
    "broken metadata and an older version": "malformed",
    "not a requirement": "what is this",
}


@pytest.mark.parametrize("wanted", REQUIREMENTS.values(), ids=REQUIREMENTS)
def test_same_requirements(plain, patched, serve, wanted):
    index = serve(an_index(api="html"))
    requirements = [wanted] if wanted == "what is this" else wanted.split()
    same(plain, patched, index, "install", "--dry-run", "-i", index.url, *requirements)


def test_same_commands(plain, patched, serve, tmp_path):
    index = serve(an_index())
    urls = ("-i", index.url)
    wheel = Wheel("root", "1.0")
    (tmp_path / wheel.filename).write_bytes(wheel.build())
    (tmp_path / "requirements.txt").write_text("left\n-c constraints.txt\n")
    (tmp_path / "constraints.txt").write_text("left<2\n")
    (tmp_path / "hashes.txt").write_text("extra==1.0 --hash=sha256:" + "0" * 64)
    for command in (
        ("download", "-d", "OUT", *urls, "root"),
        ("download", "-d", "OUT", *urls, "root", "--no-deps"),
        ("install", "--dry-run", *urls, "-r", str(tmp_path / "requirements.txt")),
        ("install", "--dry-run", *urls, "-r", str(tmp_path / "hashes.txt")),
        ("install", "--dry-run", "--no-index", "-f", str(tmp_path), "root"),
        ("install", "--dry-run", str(tmp_path / wheel.filename)),
        ("install", "--dry-run", f"{index.url[:-7]}files/extra/extra-1.0-py3-none-any.whl"),
        ("install", "--dry-run", "--quiet", "--report", "-", *urls, "extra"),
        ("install", "--dry-run", "--no-such-option", "root"),
        ("index", "versions", *urls, "left"),
        ("instal", "left"),
        ("check",),
        ("wheel", "-w", "OUT", *urls, "extra"),
    ):
        same(plain, patched, index, *command, out=tmp_path)


def test_same_installation(environments, available, serve, tmp_path):
    """What is on disk after installing is the same, too."""
    index = serve(an_index())
    kinds = {"none": environments.plain, "shim": environments.patched}
    trees = {}
    copies = [
        make(available.python, available.pip).copied(tmp_path / name)
        for name, make in kinds.items()
    ]
    done = same(*copies, index, "install", "-i", index.url, "root", "malformed==1.0")
    assert "Successfully installed" in done.out
    for copy in copies:
        trees[copy.path.name] = {
            str(path.relative_to(copy.site_packages)): path.read_bytes()
            for path in copy.site_packages.rglob("*")
            if path.is_file()
            and path.suffix != ".pyc"
            and not str(path.relative_to(copy.site_packages)).startswith("pep_variants_shim")
        }
    assert trees["none"] == trees["shim"]
    same(*copies, index, "uninstall", "-y", "root", "left")


def test_no_variants_is_as_if_there_were_none(plain, patched, serve):
    """With --no-variants pip does what an unpatched one does with the same index."""
    index = an_index()
    index.add_release(Release("app", "1.0", cuda("12.8"), non_variant=True))
    index.add_release(app("2.0"))
    serve(index)
    for wanted in ("app", "app==2.0"):
        for name, value in (("PIP_NO_VARIANTS", "1"), ("VARIANTS_NO_VARIANTS", "1")):
            arguments = ("install", "--dry-run", "-i", index.url, wanted)
            done = same(plain, patched, index, *arguments, env={name: value})
            assert ("Would install app-1.0\n" in done.out) == (wanted == "app")


def test_legacy_resolver(plain, patched, serve):
    """It sees what an unpatched pip sees."""
    index = an_index()
    index.add_release(Release("app", "1.0", cuda("12.8"), non_variant=True))
    index.add_release(app("2.0"))
    serve(index)
    legacy = ("install", "--dry-run", "-i", index.url, "--use-deprecated", "legacy-resolver")
    same(plain, patched, index, *legacy, "root", "left")
    done = patched.pip(*legacy, "app")
    assert done.out == plain.pip(*legacy, "app").out
    assert done.err == ""
