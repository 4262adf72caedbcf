"""Variants within pip's resolution: conflicts, what is installed, files that the user names.

Which build is chosen is a matter of the conformance cases.
"""

from __future__ import annotations

import pytest

from support.index import Index, index_of
from support.pip_commands import dry_run, installs
from support.projects import DRIVER, ON_CPU, ON_GPU, STATIC, app_index, built_against, cuda
from support.wheels import Release, SourceDistribution, Wheel, metadata

IN_PROCESS = ("--use-feature", "inprocess-build-deps")


def ranked(*labels):
    """Metadata of variants that all fit, in this order: labels are the values a, b, c."""
    variants = {label: {"n": {"f": [label]}} for label in labels}
    return metadata({"null": {}, **variants}, namespaces=["n"], providers={"n": STATIC})


def test_broken_variant_marker(available, patched, serve):
    """It is invalid metadata, in pip's own words, and pip does what it does then."""
    index = Index()
    index.add_release(Release("app", "2.0", ranked("a"), ("dep; variant_label == os_name",)))
    index.add_wheel(Wheel("app", "1.0"))
    done = patched.pip("install", "--dry-run", "-i", serve(index).url, "app")
    if available.pip.startswith("24.0"):
        assert (done.code, "InvalidRequirement" in done.err) == (2, True), done
        return
    installs(done, "app-1.0")
    assert "Ignoring version 2.0 of app since it has invalid metadata" in done.err


def test_upgrade(fresh, serve):
    index = serve(index_of([Release("app", "1.0", ranked("a", "b"))]))
    urls = ("-i", index.url)
    assert "app-1.0-a\n" in fresh.pip("install", *urls, "app").out
    # The version is there: the variants of it are not asked for.
    for options in ([], ["--upgrade", "--upgrade-strategy", "eager"]):
        done = fresh.pip("install", *urls, *options, "app")
        assert "Requirement already satisfied: app" in done.out, done
        assert "Successfully" not in done.out
    index.add_release(Release("app", "2.0", ranked("b"), ("dep; 'n' in variant_namespaces",)))
    index.add_wheel(Wheel("dep", "1.0"))
    done = fresh.pip("install", *urls, "-U", "app")
    assert "Successfully installed" in done.out, done
    assert {"app-2.0-b", "dep-1.0"} <= set(done.out.splitlines()[-1].split()), done
    # Away from it again, which takes a look at the installed one, without its dependencies.
    done = fresh.pip("install", *urls, "--no-deps", "app==1.0")
    assert "Successfully installed app-1.0-a\n" in done.out, done
    assert done.err == ""


# Built against a release of another project (``abi_dependency``).


@pytest.fixture
def torches(serve):
    """Releases of torch, and projects that are built against it: one also requires it."""
    index = Index()
    for version in ("2.7.1", "2.8.0", "2.9.0", "2.10.0"):
        wheel = Wheel("torch", version, extras=("x",), requires=("more; extra == 'x'",))
        index.add_wheel(wheel)
    index.add_wheel(Wheel("more", "1.0"))
    index.add_wheel(Wheel("late", "1.0", requires=("torch==2.7.1",)))
    index.add_release(built_against("ext", "2.7", "2.8", "2.9", requires=("torch",)))
    index.add_release(built_against("own", "2.8", "2.9"))
    return serve(index)


def test_built_against_another_package(patched, torches):
    """The build that fits is found whichever comes first; an extra is a candidate of its own."""
    done = dry_run(patched, torches, "ext", "late")
    installs(done, "ext-1.0-t27", "late-1.0", "torch-2.7.1")
    assert "Variant t27 for ext 1.0 instead of t29: built against torch 2.7\n" in done.out
    done = dry_run(patched, torches, "ext", "torch[x]<2.8")
    installs(done, "ext-1.0-t27", "more-1.0", "torch-2.7.1")


def test_built_against_what_is_installed(fresh, torches):
    """What pip would leave as it is, is not broken by a better build."""
    assert fresh.pip("install", "-i", torches.url, "torch==2.8.0").code == 0
    for options in ((), ("--upgrade", "--upgrade-strategy", "eager")):
        installs(dry_run(fresh, torches, *options, "own"), "own-1.0-t28")
    done = dry_run(fresh, torches, "own", "torch>2.8.0,<2.10")
    installs(done, "own-1.0-t29", "torch-2.9.0")
    assert fresh.pip("install", "-i", torches.url, "torch==2.7.1").code == 0
    installs(dry_run(fresh, torches, "own"), "own-1.0-null")


@pytest.mark.everywhere
def test_built_against_what_was_installed_and_no_longer_is(fresh, torches):
    """Told as pip tells of requirements that no longer hold: after installing, and by its check."""
    done = fresh.pip("install", "-i", torches.url, "torch==2.8.0", "own")
    assert "own-1.0-t28" in done.out, done
    assert fresh.pip("check").out == "No broken requirements found.\n"
    why = "torch 2.8.* (variant t28 is built against it)"
    done = fresh.pip("install", "-i", torches.url, "torch==2.9.0")
    told = f"own 1.0 requires {why}, but you have torch 2.9.0 which is incompatible.\n"
    assert told in done.err, done
    check = fresh.pip("check")
    assert check.out == f"own 1.0 has requirement {why}, but you have torch 2.9.0.\n", check
    # The other way round: what is installed now against what is there.
    done = fresh.pip(
        "install", "-i", torches.url, "--force-reinstall", "--variant", "own=t28", "own"
    )
    assert "own 1.0 requires torch 2.8.* (variant t28 is built against it), but" in done.err, done
    assert fresh.pip("uninstall", "-y", "torch").code == 0
    assert fresh.pip("check").out == "No broken requirements found.\n"


# Builds in the middle of a resolution.


@pytest.mark.parametrize("options", [(), IN_PROCESS])
def test_build_requirements(patched, torches, options):
    """Resolved in the middle of the resolution, they change nothing about it nor its labels."""
    if options and "invalid choice" in patched.pip("download", *options, "x", "--no-index").err:
        pytest.skip("this pip cannot do that")
    torches.add_wheel(Wheel("own", "0.9"))
    made = SourceDistribution("made", "1.0", build_requires=("own",))
    torches.add("made", made.filename, made.build())
    done = dry_run(patched, torches, *options, "torch==2.8.0", "made", "own")
    installs(done, "made-1.0", "own-1.0-t28", "torch-2.8.0")
    installs(dry_run(patched, torches, *options, "made", "own==0.9"), "made-1.0", "own-0.9")


def test_coherence(fresh, serve):
    """A project takes the build that agrees with another's: chosen, forced or installed."""
    index = Index()
    index.add_release(Release("torch", "2.9", ranked("a", "b", "c"), ("vision",)))
    index.add_release(Release("vision", "0.2", ranked("a", "b")))
    serve(index)
    coherent, forced = ("--variant-coherent", "n"), ("--variant", "torch=b")
    for wanted in (("torch",), ("vision", "torch")):
        done = dry_run(fresh, index, *coherent, *forced, *wanted)
        installs(done, "torch-2.9-b", "vision-0.2-b")
        text = "Variant b for vision 0.2 instead of a, to agree with torch (b): n f b"
        assert text in done.out
    done = dry_run(fresh, index, *coherent, "--variant", "torch=c", "torch")
    assert "No variant of vision 0.2 agrees with torch (c)" in done.err, done
    assert fresh.pip("install", "-i", index.url, *forced, "--no-deps", "torch").code == 0
    installs(dry_run(fresh, index, *coherent, "vision"), "vision-0.2-b")


@pytest.mark.one
def test_files_that_the_user_names(patched, serve, tmp_path):
    """They are taken if they fit and are what they say, and are refused with the reason if not."""
    index = serve(app_index())
    name, null = (f"app-1.0-py3-none-any-{label}.whl" for label in ("cu128", "null"))
    path = tmp_path / name
    for file in (name, null):
        (tmp_path / file).write_bytes(index.files["app"][file])
    for place in (f"app @ {path.as_uri()}", f"{index.url[:-7]}files/app/{name}"):
        installs(dry_run(patched, index, place), *ON_GPU.split())
        done = dry_run(patched, index, place, **{DRIVER: "12.6"})
        assert (done.code, done.err) == (
            1,
            f"ERROR: {name} does not fit this machine: needs CUDA driver 12.8 or newer, "
            "this one supports up to 12.6\n",
        )
        done = dry_run(patched, index, "--no-variants", place)
        assert (done.code, done.err) == (
            1,
            f"ERROR: {name} is a variant wheel, and variants are switched off: "
            "use a non-variant wheel, or run pip without --no-variants or the legacy resolver\n",
        )
    installs(dry_run(patched, index, str(tmp_path / null)), *ON_CPU.split())
    # What was said of another build of it before is set right.
    done = dry_run(patched, index, "app", f"app @ {(tmp_path / null).as_uri()}")
    installs(done, *ON_CPU.split())
    assert f"Variant null for app 1.0: the file that is asked for, {null}\n" in done.out, done
    for inside, problem in (
        (None, "is named a variant wheel, but has no variant.json"),
        (cuda("12.8"), "the filename has label 'cu128'"),
    ):
        path.write_bytes(Wheel("app", "1.0", "cu128", variant_json=inside).build())
        done = patched.pip("install", "--dry-run", "--no-index", "--no-deps", str(path))
        assert done.code == 1
        assert done.err.startswith(f"ERROR: {path.as_uri()}"), done
        assert problem in done.err
        assert done.err.count("\n") == 1
