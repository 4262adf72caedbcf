"""Broken and missing metadata costs a version its variants, with one warning, no more.

What is chosen then is a matter of the conformance cases.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.index import Answer, Index
from support.pip_commands import dry_run, installs
from support.projects import CUDA_12_8, ON_GPU, app_index, cuda
from support.wheels import Release, Wheel

FILE = "app-2.0-variants.json"
GOOD = json.dumps(cuda("12.8")).encode()
OTHER = {**cuda("12.8"), "variants": {"cu128": {"nvidia": {"cuda_version_lower_bound": ["12.6"]}}}}


def an_index(**options):
    """Version 2.0 has variants, and a plain wheel; 1.0 has nothing else."""
    index = Index(**options)
    index.add_wheel(Wheel("app", "1.0"))
    index.add_release(Release("app", "2.0", cuda("12.8"), non_variant=True))
    return index


ANSWERS = {
    "cut off": (Answer.cut_off(GOOD[:-40]), FILE),  # in the words of whichever urllib3
    "redirected to nowhere": (Answer.redirect("http://127.0.0.1:1/"), "cannot be fetched"),
    "of another hash": (Answer(body=GOOD + b" "), "does not match its sha256 hash"),
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_metadata_that_cannot_be_used(patched, serve, answer):
    index = serve(an_index(api="html", hashes="hash" in answer))
    answer, problem = ANSWERS[answer]
    index.faults[FILE] = lambda: answer
    done = dry_run(patched, index, "--retries", "0", "app")
    assert done.err.count("\n") == 1, done
    start = f"WARNING: The variant wheels of app 2.0 are ignored. {index.url[:-7]}"
    assert done.err.startswith(start), done
    assert FILE in done.err
    assert problem in done.err
    installs(done, "app-2.0")
    assert index.fetched.count(FILE) <= (1 if answer.status != 302 else 40)


@pytest.mark.matrix
def test_a_redirect_to_a_local_file(patched, serve, tmp_path):
    """It is not followed, whatever the file has."""
    (tmp_path / "variants.json").write_bytes(GOOD)
    index = serve(an_index())
    index.faults[FILE] = lambda: Answer.redirect((tmp_path / "variants.json").as_uri())
    done = dry_run(patched, index, "app")
    installs(done, "app-2.0")
    assert "302" in done.err, done


@pytest.mark.one
def test_directories(patched, tmp_path):
    """Of ``--find-links`` pip lists no metadata files; an index may be a directory of pages."""
    for name, data in an_index().files["app"].items():
        (tmp_path / name).write_bytes(data)
    links = ("install", "--dry-run", "--no-index", "-f", str(tmp_path), "app")
    (tmp_path / FILE).rename(tmp_path / "App-2-variants.json")  # as the publisher spells it
    installs(patched.pip(*links, env=CUDA_12_8), "app-2.0-cu128")
    (tmp_path / "App-2-variants.json").unlink()
    (tmp_path / FILE).mkdir()
    done = patched.pip(*links)
    installs(done, "app-2.0")
    assert "cannot be fetched" in done.err
    for project, files in app_index().files.items():
        folder = tmp_path / "simple" / project
        folder.mkdir(parents=True)
        for name, data in files.items():
            (folder / name).write_bytes(data)
        page = "".join(f'<a href="{name}">{name}</a>' for name in files)
        (folder / "index.html").write_text(f"<!DOCTYPE html>{page}")
    simple = (tmp_path / "simple").as_uri()
    done = patched.pip("install", "--dry-run", "-i", simple, "app", env=CUDA_12_8)
    installs(done, *ON_GPU.split())


@pytest.mark.one
@pytest.mark.parametrize("metadata_file", [False, True], ids=["wheel", "PEP 658"])
def test_wheel_that_is_not_what_was_promised(patched, serve, tmp_path, metadata_file):
    """It is an error that shows both, before anything is installed: pip may have it late."""
    index = an_index()
    wheel = Wheel("app", "2.0", "cu128", variant_json=OTHER)
    index.add_wheel(wheel, metadata_file=metadata_file)
    index.add_wheel(Wheel("root", "1.0", requires=("app",)), metadata_file=metadata_file)
    serve(index)
    done = patched.pip("install", "-t", str(tmp_path / "t"), "-i", index.url, "root", env=CUDA_12_8)
    assert done.code == 1
    (error,) = done.err.splitlines()
    assert error.startswith("ERROR: ")
    assert f"{index.url[:-7]}files/app/{wheel.filename}" in error
    for problem in ("variants.cu128 differs", ":: 12.8", ":: 12.6"):
        assert problem in error
    assert not (tmp_path / "t").exists()


@pytest.mark.one
def test_secrets_stay_secret(patched, serve):
    index = an_index(credentials="user:secret")
    url = serve(index).url.replace("://", "://user:secret@")
    for problem in ("500", "sha256"):
        if problem == "500":
            index.faults[FILE] = lambda: Answer(500)
        else:
            index.faults.clear()
            index.wrong_hashes.add(FILE)
        done = dry_run(patched, index, "-v", "-i", url, "--retries", "0", "app")
        installs(done, "app-2.0")
        assert problem in done.err
        assert "secret" not in done.text


@pytest.mark.one
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
@pytest.mark.parametrize(
    "name",
    [FILE, "app-2.0-1-py3-none-any-cu128.whl", "app-3.0-py3-none-any.whl", "index.html"],
)
def test_a_pipe_among_the_files(patched, tmp_path, name):
    """It is none of them: to read it would wait for who writes into it, for ever."""
    for file, data in an_index().files["app"].items():
        (tmp_path / file).write_bytes(data)
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    links = ("--no-index", "--find-links", str(tmp_path), "app")
    done = patched.pip("install", "--dry-run", *links, env=CUDA_12_8)
    line = f"Ignored {tmp_path / name}: not a regular file\n"
    installs(done, "app-2.0-cu128")
    assert done.err == f"WARNING: {line}", done
    done = subprocess.run(
        [Path(sys.executable).with_name("variants"), "resolve", *links],
        env={**os.environ, **CUDA_12_8}, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.split()[:3] == ["app", "2.0", "cu128"]
    # Other tools than pip read no pages of a folder.
    assert done.stderr.endswith("" if name == "index.html" else line), done
