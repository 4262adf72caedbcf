"""What pip's user reads about variants: the choice, what is missed, and why nothing fits."""

from __future__ import annotations

import pytest

from support.index import Index
from support.projects import CUDA_12_8, DRIVER, cuda
from support.wheels import Release, SourceDistribution, Wheel

HINT = " (-v shows every variant, --variant gpu=LABEL takes another one)"
NEEDS_13 = "cu130 needs CUDA driver 13.0 or newer, this one supports up to 12.8"


def only(*versions):
    """Metadata of variants for CUDA, without the null variant."""
    found = cuda(*versions)
    del found["variants"]["null"]
    return found


def release(version, variants, **options):
    return Release("gpu", version, variants, **options)


def install(environment, index, *wanted, command=("install", "--dry-run"), env=CUDA_12_8):
    done = environment.pip(*command, "-i", index.url, *wanted, env=env)
    assert "Traceback" not in done.text
    return done


def the_line(done, start):
    """Return the one line of the output that begins like this."""
    (line,) = (line.strip() for line in done.out.splitlines() if line.strip().startswith(start))
    return line


def test_the_choice_says_what_is_missed_and_how_to_see_more(patched, serve):
    index = Index()
    index.add_release(release("2.0", cuda("12.6", "12.8", "13.0")))
    index.add_release(Release("other", "1.0", cuda("12.8", "13.0")))
    serve(index)
    done = install(patched, index, "gpu", "other")
    why = f"CUDA driver 12.8 or newer; {NEEDS_13}"
    assert the_line(done, "Variant cu128 for gpu") == f"Variant cu128 for gpu 2.0: {why}{HINT}"
    # How to see more is said once.
    assert the_line(done, "Variant cu128 for other") == f"Variant cu128 for other 1.0: {why}"
    # With -v there is the table.
    done = install(patched, index, "gpu", "-v")
    assert the_line(done, "Variant cu128 for gpu") == f"Variant cu128 for gpu 2.0: {why}{HINT}"
    newer = {**CUDA_12_8, DRIVER: "13.0"}
    done = install(patched, index, "gpu", env=newer)
    line = "Variant cu130 for gpu 2.0: CUDA driver 13.0 or newer"
    assert the_line(done, "Variant cu130") == line
    done = install(patched, index, "gpu", "--variant", "gpu=cu126", env=newer)
    assert the_line(done, "Variant cu126") == "Variant cu126 for gpu 2.0: asked for"


def test_nothing_fits(patched, serve):
    """The error has every variant with the reason, and what helps."""
    index = Index()
    index.add_release(release("2.0", only("12.9", "13.0")))
    index.add_release(release("1.0", only("13.0")))
    index.add_wheel(Wheel("gpu", "0.9"))
    index.add_wheel(Wheel("app", "1.0", requires=("gpu==2.0",)))
    serve(index)
    for wanted in (("gpu>=1.0",), ("app",)):
        done = install(patched, index, *wanted)
        assert done.code == 1, done
        requirement = "gpu==2.0" if wanted == ("app",) else "gpu>=1.0"
        _, error, *lines = (line.strip() for line in done.err.splitlines())
        assert error.startswith(f"ERROR: No matching distribution found for {requirement}")
        assert error.endswith(". None of the variants of gpu 2.0 fits this machine:")
        assert lines[:3] == [
            "cu129  needs CUDA driver 12.9 or newer, this one supports up to 12.8",
            "cu130  needs CUDA driver 13.0 or newer, this one supports up to 12.8",
            "What helps: update the NVIDIA driver to one that supports CUDA 12.9, or ask for "
            "gpu==0.9, which has a non-variant file, or describe the machine that counts "
            "with --variant-platform FILE.",
        ]


def test_a_release_that_is_passed_over_is_named(patched, serve):
    index = Index()
    index.add_release(release("3.0", only("13.0", "14.0")))
    index.add_release(release("2.1", only("13.0")))
    index.add_release(release("2.0", cuda("12.8")))
    serve(index)
    done = install(patched, index, "gpu")
    assert the_line(done, "gpu 3.0") == (
        "gpu 3.0 (and 1 more release) was passed over: none of its variants fits this machine "
        f"({NEEDS_13}); gpu 2.0 was chosen"
    )
    assert done.out.splitlines()[-1] == "Would install gpu-2.0-cu128"
    # Those that the user does not ask for are not passed over.
    assert "passed over" not in install(patched, index, "gpu<2.1").text


def test_a_release_that_is_passed_over_for_the_installed_one(fresh, serve):
    index = Index()
    index.add_release(release("1.0", cuda("12.8")))
    serve(index)
    assert install(fresh, index, "gpu", command=("install",)).code == 0
    index.add_release(release("2.0", only("13.0")))
    done = install(fresh, index, "gpu", "--upgrade")
    assert the_line(done, "gpu 2.0") == (
        f"gpu 2.0 was passed over: none of its variants fits this machine ({NEEDS_13}); "
        "gpu 1.0 is kept"
    )


def documents(index):
    """The metadata files that were fetched since the last call."""
    found = [name for name in index.fetched if name.endswith("-variants.json")]
    index.requests.clear()
    return found


def test_an_older_release_that_would_use_the_gpu(patched, serve):
    """One line names it, if it is among the next 15; nothing is fetched where none can be."""
    index = Index()
    index.add_release(release("3.0", cuda("13.0")))
    index.add_release(release("2.1", cuda("14.0")))
    index.add_release(release("2.0", cuda("12.6", "12.8")))
    index.add_release(release("1.0", cuda("12.6")))
    serve(index)
    line = (
        "gpu 3.0: only the null variant fits this machine; "
        "2.0 has variant cu128 (CUDA driver 12.8 or newer)"
    )
    done = install(patched, index, "gpu")
    assert the_line(done, "gpu 3.0") == f"{line}: to take it, require gpu==2.0"
    assert done.out.splitlines()[-1] == "Would install gpu-3.0-null"
    assert documents(index) == [f"gpu-{version}-variants.json" for version in ("3.0", "2.1", "2.0")]
    # Nothing is displaced: another machine, a build that fits, a version that was asked for.
    for wanted, env in (
        ("gpu", {}),
        ("gpu", {**CUDA_12_8, DRIVER: "13.0"}),
        ("gpu<3", {**CUDA_12_8, DRIVER: "14.0"}),
        ("gpu==3.0", CUDA_12_8),
    ):
        done = install(patched, index, wanted, env=env)
        assert "to take it" not in done.text
        assert len(documents(index)) == 1, wanted
    for number in range(16):
        index.add_release(release(f"3.{number + 1}", cuda("13.0")))
    assert "to take it" not in install(patched, index, "gpu").text
    assert len(documents(index)) == 16


@pytest.mark.parametrize("in_process", [False, True])
def test_labels_of_builds_are_not_those_of_what_is_installed(patched, serve, in_process, tmp_path):
    """A plain package beside what a build of another one took of the same project."""
    index = Index()
    index.add_release(release("2.0", cuda("12.8")))
    index.add_wheel(Wheel("gpu", "1.0"))
    source = SourceDistribution("source", "1.0", build_requires=("gpu",))
    index.add("source", source.filename, source.build())
    serve(index)
    extra = ("--use-feature", "inprocess-build-deps") if in_process else ()
    if "invalid choice" in patched.pip("download", *extra, "x", "--no-index").err:
        pytest.skip("this pip cannot do that")
    done = install(patched, index, "source", "gpu==1.0", *extra)
    assert done.out.splitlines()[-1] == "Would install gpu-1.0 source-1.0", done
