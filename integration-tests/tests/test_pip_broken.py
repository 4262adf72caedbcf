"""Broken, missing and hostile metadata costs a version its variants, with one warning, no more."""

from __future__ import annotations

import json

import pytest

from support.index import Answer, Index
from support.projects import CUDA_12_8, cuda
from support.wheels import V0_2_0, Release, Wheel

FILE = "app-2.0-variants.json"
GOOD = json.dumps(cuda("12.8")).encode()

OTHER = {**cuda("12.8"), "variants": {"cu128": {"nvidia": {"cuda_version_lower_bound": ["12.6"]}}}}

# What is wrong, and what the warning says of it.
CONTENTS = {
    "truncated": (GOOD[:-40], "not valid JSON"),
    "a namespace without place": (
        json.dumps({**cuda(), "variants": {"a": {"other": {"x": ["1"]}}}}).encode(),
        "variants.a.other: is not listed",
    ),
    "an unknown major version": (
        json.dumps({**cuda("12.8"), "$schema": V0_2_0.replace("0.2.0", "7.0.0")}).encode(),
        "7.0.0",
    ),
    "huge": (GOOD + b" " * (33 << 20), "larger than 8 MiB"),
}

ANSWERS = {
    "a server error": (Answer(500, b"oh"), "500"),
    "cut off": (Answer.cut_off(GOOD[:-40]), FILE),  # in the words of whichever urllib3
    "redirected to nowhere": (Answer.redirect("http://127.0.0.1:1/"), "cannot be fetched"),
}


def an_index(**options):
    """Version 2.0 has variants, and a plain wheel; 1.0 has nothing else."""
    index = Index(**options)
    index.add_wheel(Wheel("app", "1.0"))
    index.add_release(Release("app", "2.0", cuda("12.8"), non_variant=True))
    return index


def dry_run(environment, index, *options, **env):
    return environment.pip(
        "install", "--dry-run", "--retries", "0", "-i", index.url, *options,
        env={**CUDA_12_8, **env},
    )  # fmt: skip


def assert_warned(done, index, problem, *, file=FILE, version="2.0"):
    """Check that there is one warning with the URL and the problem, and a good end."""
    assert done.err.count("\n") == 1, done
    warning = done.err
    start = f"WARNING: The variant wheels of app {version} are ignored. {index.url[:-7]}"
    assert warning.startswith(start), done
    assert file in warning
    assert problem in warning
    assert done.code == 0, done


@pytest.mark.parametrize(("data", "problem"), CONTENTS.values(), ids=CONTENTS)
def test_contents(patched, serve, data, problem):
    index = an_index()
    index.add("app", FILE, data)
    done = dry_run(patched, serve(index), "app")
    assert_warned(done, index, problem)
    assert "Would install app-2.0\n" in done.out


@pytest.mark.parametrize(("answer", "problem"), ANSWERS.values(), ids=ANSWERS)
def test_answers(patched, serve, answer, problem):
    index = an_index(hashes=False)
    index.faults[FILE] = lambda: answer
    done = dry_run(patched, serve(index), "app")
    assert_warned(done, index, problem)
    assert "Would install app-2.0\n" in done.out
    assert index.fetched.count(FILE) <= (1 if answer.status != 302 else 40)


@pytest.mark.parametrize(
    ("ranges", "missing"), [("suffix", "not listed"), ("explicit", 404), ("none", 403)]
)
def test_wheels_are_looked_into_where_there_is_no_metadata_file(patched, serve, ranges, missing):
    """Also if the server gives no parts of them: they are small enough to be downloaded."""
    index = an_index(ranges=ranges != "none", suffix_ranges=ranges == "suffix")
    index.add_wheel(Wheel("app", "2.0", "cu128", variant_json=OTHER))
    if missing == "not listed":
        index.unlisted = {FILE}
    else:
        index.faults[FILE] = lambda: Answer(missing)
    done = dry_run(patched, serve(index), "app")
    assert "Would install app-2.0-cu128\n" in done.out, done
    assert done.err == ""


def test_wheels_in_place_of_the_metadata(patched, serve):
    """One request for each label tells what the file would have said."""
    index = an_index(unlisted={FILE}, ranges=True)
    index.add_wheel(Wheel("app", "2.0", "cu128", variant_json=OTHER))
    done = dry_run(patched, serve(index), "app")
    assert "Would install app-2.0-cu128\n" in done.out, done
    assert done.err == ""
    labels = [name.rpartition("-")[2] for name in index.fetched if name.endswith(".whl")]
    assert labels[:2] == ["cu128.whl", "null.whl"]
    assert "CUDA driver 12.6" in done.out


def test_wrong_hash(patched, serve):
    index = an_index(api="html", wrong_hashes={FILE})
    done = dry_run(patched, serve(index), "app")
    assert_warned(done, index, "does not match its sha256 hash")
    assert "Would install app-2.0\n" in done.out


def test_older_version_instead(patched, serve):
    """Where nothing is left of a version, pip goes on to the next."""
    index = an_index(wrong_hashes={FILE})
    index.remove("app", "app-2.0-py3-none-any.whl")
    done = dry_run(patched, serve(index), "app")
    assert_warned(done, index, "sha256")
    assert "Would install app-1.0\n" in done.out


def test_label_that_the_metadata_does_not_know(patched, serve):
    index = an_index()
    index.add_wheel(Wheel("app", "2.0", "newer"))
    done = dry_run(patched, serve(index), "app")
    assert done.err == (
        "WARNING: Variants of app 2.0 that its metadata does not list are ignored: newer\n"
    )
    assert "Would install app-2.0-cu128\n" in done.out


def test_directory_without_metadata(patched, tmp_path):
    for name, data in an_index().files["app"].items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / FILE).unlink()
    done = patched.pip("install", "--dry-run", "--no-index", "-f", str(tmp_path), "app")
    assert "Would install app-2.0-null\n" in done.out, done
    assert done.err == ""
    (tmp_path / FILE).mkdir()
    done = patched.pip("install", "--dry-run", "--no-index", "-f", str(tmp_path), "app")
    assert "Would install app-2.0\n" in done.out, done
    assert "cannot be fetched" in done.err


def test_every_version_is_broken(patched, serve):
    """One warning for each version that pip considers, and one request."""
    index = Index()
    index.add_wheel(Wheel("app", "0.1"))
    for version in ("1.0", "2.0", "3.0"):
        index.add_release(Release("app", version, cuda("12.8")), metadata=b"[]")
    done = dry_run(patched, serve(index), "app")
    assert "Would install app-0.1\n" in done.out, done
    files = [f"app-{version}-variants.json" for version in ("3.0", "2.0", "1.0")]
    assert [name for name in index.fetched if name.endswith(".json")] == files
    for warning, file in zip(done.err.splitlines(), files, strict=True):
        assert file in warning


def wheel_that_says(inside):
    """An index whose wheel of cu128 holds *inside* as its variant.json, None for none."""
    index = an_index()
    index.add_wheel(Wheel("app", "2.0", "cu128", variant_json=inside))
    return index


WHEELS = {
    "other properties": (OTHER, ["variants.cu128 differs", ":: 12.8", ":: 12.6"]),
    "nothing": (None, ["is named a variant wheel, but has no variant.json"]),
}


@pytest.mark.parametrize(("inside", "problems"), WHEELS.values(), ids=WHEELS)
def test_wheel_that_is_not_what_was_promised(patched, serve, tmp_path, inside, problems):
    """It is an error that shows both, and nothing is installed."""
    index = serve(wheel_that_says(inside))
    index.add_wheel(Wheel("root", "1.0", requires=("app",)))
    done = patched.pip("install", "-t", str(tmp_path / "t"), "-i", index.url, "root", env=CUDA_12_8)
    assert done.code == 1
    (error,) = done.err.splitlines()
    assert error.startswith("ERROR: ")
    assert f"{index.url[:-7]}files/app/app-2.0-py3-none-any-cu128.whl" in error
    for problem in problems:
        assert problem in error
    assert not (tmp_path / "t").exists()


@pytest.mark.one
def test_wheel_that_is_not_what_was_promised_after_its_metadata_file(patched, serve, tmp_path):
    """With PEP 658 the wheel itself comes late: still before anything is installed."""
    index = wheel_that_says(OTHER)
    for wheel in (Wheel("root", "1.0", requires=("app",)), Wheel("app", "2.0", "cu128")):
        index.metadata_files[wheel.filename] = wheel.metadata()
    index.add_wheel(Wheel("root", "1.0", requires=("app",)))
    serve(index)
    done = patched.pip("install", "-t", str(tmp_path / "t"), "-i", index.url, "root", env=CUDA_12_8)
    assert done.code == 1
    assert "variants.cu128 differs" in done.err
    assert not (tmp_path / "t").exists()


@pytest.mark.one
def test_secrets_stay_secret(patched, serve):
    index = an_index(credentials="user:secret", wrong_hashes={FILE})
    serve(index)
    url = index.url.replace("://", "://user:secret@")
    done = dry_run(patched, index, "-v", "-i", url, "app")
    assert "Would install app-2.0\n" in done.out, done
    assert "sha256" in done.err
    assert "secret" not in done.text
    index.faults[FILE] = lambda: Answer(500)
    index.wrong_hashes.clear()
    done = dry_run(patched, index, "-v", "-i", url, "app")
    assert "500" in done.err, done
    assert "secret" not in done.text
