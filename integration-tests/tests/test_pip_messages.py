"""What pip's user reads about variants: the choice, what is missed, and why nothing fits."""

from __future__ import annotations

import pytest

from pep_variants.wheel_files import digest_of, read_record
from support.index import Index
from support.pip_commands import dry_run, installs
from support.projects import DRIVER, ON_GPU, app_index, cuda
from support.wheels import Release, Wheel

HINT = " (-v shows every variant, --variant gpu=LABEL takes another one)"
NEEDS_13 = "cu130 needs CUDA driver 13.0 or newer, this one supports up to 12.8"


def only(*versions):
    """Metadata of variants for CUDA, without the null variant."""
    found = cuda(*versions)
    del found["variants"]["null"]
    return found


def gpu_releases(**releases):
    """An index with releases of gpu, by version with an underscore."""
    index = Index()
    for version, variants in releases.items():
        index.add_release(Release("gpu", version.strip("v").replace("_", "."), variants))
    return index


def the_line(done, start):
    """Return the one line of the output that begins like this."""
    (line,) = (line.strip() for line in done.out.splitlines() if line.strip().startswith(start))
    return line


def documents(index):
    """The metadata files that were fetched since the last call."""
    found = [name for name in index.fetched if name.endswith("-variants.json")]
    index.requests.clear()
    return found


def test_requests(patched, serve):
    """Of other variants nothing is fetched; old pips download in dry runs, too."""
    index = serve(app_index(metadata_file=True))
    done = dry_run(patched, index, "app")
    installs(done, *ON_GPU.split())
    assert done.err == ""
    metadata = "app-1.0-py3-none-any-cu128.whl.metadata"
    assert index.fetched[:2] == ["app-1.0-variants.json", metadata]
    found = {name for name in index.fetched if name.startswith("app-")}
    assert found <= {"app-1.0-variants.json", metadata, metadata.removesuffix(".metadata")}


_DECIDED = ("always", "for-gpu", "for-cu128; python_version >= '3'", "for-128")


@pytest.mark.matrix
def test_install(patched, serve, tmp_path):
    index = serve(app_index())
    target = ("-t", str(tmp_path))
    env = {DRIVER: "12.8"}
    done = patched.pip("install", *target, "-i", index.url, "app", env=env)
    assert (done.code, done.err) == (0, ""), done
    assert done.out.splitlines()[-1].startswith("Successfully installed ")
    assert sorted(done.out.splitlines()[-1].split()[2:]) == ON_GPU.split()
    # METADATA has what was decided for this machine, and RECORD agrees with it.
    info = tmp_path / "app-1.0.dist-info"
    decided = Wheel("app", "1.0", requires=_DECIDED).metadata()
    assert (info / "METADATA").read_bytes() == decided
    rows = read_record((info / "RECORD").read_bytes(), "RECORD")
    (row,) = (row for row in rows if row.path.endswith("/METADATA"))
    assert row.digest == digest_of(decided)


def test_the_choice_says_what_is_missed_and_how_to_see_more(patched, serve):
    index = gpu_releases(v2_0=cuda("12.6", "12.8", "13.0"))
    index.add_release(Release("other", "1.0", cuda("12.8", "13.0")))
    done = dry_run(patched, serve(index), "gpu", "other")
    why = f"CUDA driver 12.8 or newer; {NEEDS_13}"
    assert the_line(done, "Variant cu128 for gpu") == f"Variant cu128 for gpu 2.0: {why}{HINT}"
    # How to see more is said once.
    assert the_line(done, "Variant cu128 for other") == f"Variant cu128 for other 1.0: {why}"
    done = dry_run(patched, index, "gpu", "-v")
    lines = [line.split() for line in done.out.splitlines() if line.startswith("    ")]
    assert [line[:2] for line in lines] == [
        ["cu128", "chosen"], ["nvidia", "::"], ["cu126", "compatible"], ["null", "compatible"],
        ["cu130", "rejected"],
    ], done  # fmt: skip
    assert lines[1] == "nvidia :: cuda_version_lower_bound :: 12.8".split()
    done = dry_run(patched, index, "gpu", "--variant", "gpu=cu126", **{DRIVER: "13.0"})
    assert the_line(done, "Variant cu126") == "Variant cu126 for gpu 2.0: asked for"


def test_nothing_fits(patched, serve):
    """The error has every variant with the reason, and what helps."""
    index = gpu_releases(v2_0=only("12.9", "13.0"), v1_0=only("13.0"))
    index.add_wheel(Wheel("gpu", "0.9"))
    index.add_wheel(Wheel("app", "1.0", requires=("gpu==2.0",)))
    done = dry_run(patched, serve(index), "app")
    assert done.code == 1, done
    _, error, *lines = (line.strip() for line in done.err.splitlines())
    assert error.startswith("ERROR: No matching distribution found for gpu==2.0")
    assert error.endswith(". None of the variants of gpu 2.0 fits this machine:")
    assert lines[:3] == [
        "cu129  needs CUDA driver 12.9 or newer, this one supports up to 12.8",
        "cu130  needs CUDA driver 13.0 or newer, this one supports up to 12.8",
        "What helps: update the NVIDIA driver to one that supports CUDA 12.9, or ask for "
        "gpu==0.9, which has a non-variant file, or describe the target machine "
        "with --variant-platform FILE.",
    ]


def test_releases_that_are_passed_over(fresh, serve):
    """Those that do not fit, and the older one that would use the GPU, are named."""
    index = serve(gpu_releases(v3_0=only("13.0", "14.0"), v2_1=only("13.0"), v2_0=cuda("12.8")))
    done = dry_run(fresh, index, "gpu")
    assert the_line(done, "gpu 3.0") == (
        "gpu 3.0 (and 1 more release) was passed over: none of its variants fits this machine "
        f"({NEEDS_13}); gpu 2.0 was chosen"
    )
    installs(done, "gpu-2.0-cu128")
    # Those that the user does not ask for are not passed over.
    assert "passed over" not in dry_run(fresh, index, "gpu<2.1").text
    fresh.pip("install", "-i", index.url, "gpu<2.1", env={DRIVER: "12.8"})
    done = dry_run(fresh, index, "gpu<3", "--upgrade")
    assert the_line(done, "gpu 2.1").endswith("; gpu 2.0 is kept")
    fresh.pip("uninstall", "-y", "gpu")
    index.add_release(Release("gpu", "4.0", cuda("14.0")))
    documents(index)
    done = dry_run(fresh, index, "gpu")
    assert the_line(done, "gpu 4.0") == (
        "gpu 4.0: only the null variant fits this machine; "
        "2.0 has variant cu128 (CUDA driver 12.8 or newer): to take it, require gpu==2.0"
    )
    assert documents(index) == [f"gpu-{n}-variants.json" for n in ("4.0", "3.0", "2.1", "2.0")]
    # Nothing is displaced: a build that fits, a version that was asked for.
    for wanted, driver in (("gpu", "14.0"), ("gpu==4.0", "12.8")):
        done = dry_run(fresh, index, wanted, **{DRIVER: driver})
        assert "to take it" not in done.text
        assert len(documents(index)) == 1, wanted
