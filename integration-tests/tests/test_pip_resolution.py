"""What pip resolves to: between variants, versions, indexes and what is installed."""

from __future__ import annotations

import sysconfig

import pytest

from support.index import Index, index_of
from support.projects import CUDA_12_8, DRIVER, ON_CPU, ON_GPU, app, app_index, cuda
from support.wheels import Release, SourceDistribution, Wheel, metadata

STATIC = {"static-properties": {"f": ["a", "b", "c"]}, "feature-order": ["f"]}


def ranked(*labels, provider=STATIC):
    """Metadata of variants that all fit, in this order: labels are the values a, b, c."""
    variants = {label: {"n": {"f": [label]}} for label in labels}
    return metadata({"null": {}, **variants}, namespaces=["n"], providers={"n": provider})


def dry_run(environment, index, *wanted, **env):
    done = environment.pip("install", "--dry-run", "-i", index.url, *wanted, env=env)
    assert "Traceback" not in done.text
    return done


def installs(done, *names):
    """Check that pip would install just these."""
    assert done.code == 0, done
    assert done.out.splitlines()[-1].split() == ["Would", "install", *names], done


def metadata_files(index):
    return [name for name in index.fetched if name.endswith(".json")]


GATED = (
    "dep>=2; variant_label == 'a'",
    "dep>=3; 'n :: f :: b' in variant_properties",
    "dep<2; 'n' not in variant_namespaces",
)


@pytest.mark.parametrize("metadata_file", [True, False])
def test_conflict_is_answered_by_the_next_version(patched, serve, metadata_file):
    """The variant of a version is chosen before its dependencies are read (PEP 825)."""
    index = Index()
    index.add_release(
        Release("app", "1.0", ranked("b", "c"), GATED[2:]), metadata_file=metadata_file
    )
    index.add_release(Release("app", "2.0", ranked("a", "c"), GATED), metadata_file=metadata_file)
    for version in ("1.0", "2.0", "3.0"):
        index.add_wheel(Wheel("dep", version))
    index.add_wheel(Wheel("other", "1.0", requires=("dep<2",)))
    done = dry_run(patched, serve(index), "app", "other")
    installs(done, "app-1.0-b", "dep-1.0", "other-1.0")
    read = {
        name.removesuffix(".metadata") for name in index.fetched if name.startswith("app-2.0-py3")
    }
    assert read == {"app-2.0-py3-none-any-a.whl"}
    # Users may choose the variant whose dependencies go with it.
    done = dry_run(patched, index, "--variant", "app=c", "app", "other")
    installs(done, "app-2.0-c", "dep-1.0", "other-1.0")


@pytest.mark.parametrize("there", [False, True], ids=["absent", "conflicting"])
def test_a_dependency_by_a_marker_that_cannot_be_had_is_an_error(patched, serve, there):
    """Markers take no part in choosing a variant (PEP 825, "Evaluating variant markers")."""
    requires = ("dep>=2; python_version > '3' and 'n' in variant_namespaces",)
    index = Index()
    index.add_release(Release("app", "1.0", ranked("a", "b"), requires, non_variant=True))
    if there:
        index.add_wheel(Wheel("dep", "1.0"))
    else:
        index.files["dep"] = {}
    done = dry_run(patched, serve(index), "app", *(["dep<2"] if there else []))
    assert done.code == 1, done
    assert (
        "ERROR: app 1.0 (variant a) requires dep>=2 because of the marker python_version > '3' and "
        "'n' in variant_namespaces. Markers take no part in choosing a variant: choose another "
        "variant with --variant app=null, or give --no-variants\n"
    ) in done.err
    assert "null" not in done.out
    installs(dry_run(patched, index, "--variant", "app=null", "app"), "app-1.0-null")


def test_metadata_only_of_versions_that_are_considered(patched, serve):
    index = Index()
    for minor in range(20):
        release = Release("app", f"1.{minor}", ranked("a", "b"), ("dep", "dep[x]"))
        index.add_release(release)
    index.add_wheel(Wheel("dep", "1.0", extras=("x",), requires=("app[y]; extra == 'x'",)))
    done = dry_run(patched, serve(index), "app<1.9", "app[z]<1.9")
    installs(done, "app-1.8-a", "dep-1.0")
    assert metadata_files(index) == ["app-1.8-variants.json"]


def test_null_variant_of_another_index_is_no_better_than_a_platform_wheel(patched, serve):
    """Both promise to run here; between indexes pip's own order decides, which is by tag."""
    native = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    first, second = Index(), Index()
    first.add_wheel(Wheel("app", "1.0", tag=f"py3-none-{native}"))
    second.add_release(Release("app", "1.0", ranked()))
    serve(first), serve(second)
    for main, extra in ((first, second), (second, first)):
        done = dry_run(patched, main, "--extra-index-url", extra.url, "app")
        installs(done, "app-1.0")


@pytest.mark.parametrize(
    "filename",
    [
        f"app-1.0-{'9' * 5000}-py3-none-any-a.whl",
        f"app-{'9' * 5000}-variants.json",
    ],
    ids=["build", "metadata"],
)
def test_numbers_of_thousands_of_digits_cost_the_file(patched, serve, filename):
    """`int` refuses to read them. Without variants, pip skips such names as invalid."""
    index = Index()
    index.add_release(Release("app", "1.0", ranked("a")))
    index.add("app", filename, b"")
    installs(dry_run(patched, serve(index), "app"), "app-1.0-a")


def test_broken_variant_marker(available, patched, serve):
    """It is invalid metadata, in pip's own words, and pip does what it does then."""
    index = Index()
    index.add_release(Release("app", "2.0", ranked("a"), ("dep; variant_label == os_name",)))
    index.add_wheel(Wheel("app", "1.0"))
    done = patched.pip("install", "--dry-run", "-i", serve(index).url, "app")
    if available.pip.startswith("24.0"):
        assert done.code == 2, done
        assert "InvalidRequirement" in done.err
        return
    installs(done, "app-1.0")
    assert "Ignoring version 2.0 of app since it has invalid metadata" in done.err


def test_upgrade(fresh, serve):
    index = serve(index_of([Release("app", "1.0", ranked("a", "b"))]))
    urls = ("-i", index.url)
    assert "app-1.0-a\n" in fresh.pip("install", *urls, "app").out
    # The version is there: the variants of it are not asked for.
    for options in ([], ["--upgrade"], ["--upgrade", "--upgrade-strategy", "eager"]):
        done = fresh.pip("install", *urls, *options, "app")
        assert "Requirement already satisfied: app" in done.out, done
        assert "install" not in done.out.replace("already", "").splitlines()[-1].lower()
    index.add_release(Release("app", "2.0", ranked("b"), ("dep; 'n' in variant_namespaces",)))
    index.add_wheel(Wheel("dep", "1.0"))
    assert "already satisfied" in fresh.pip("install", *urls, "app").out
    done = fresh.pip("install", *urls, "-U", "app")
    assert done.out.splitlines()[-1] in (
        "Successfully installed app-2.0-b dep-1.0",
        "Successfully installed dep-1.0 app-2.0-b",
    ), done
    # Away from it again, which takes a look at the installed one, without its dependencies.
    done = fresh.pip("install", *urls, "--no-deps", "app==1.0")
    assert "Successfully installed app-1.0-a\n" in done.out, done
    assert done.err == ""
    done = fresh.pip("install", *urls, "-U", "--no-deps", "app")
    done = fresh.pip("install", *urls, "--no-deps", "--no-variants", "dep", "--force-reinstall")
    assert "Successfully installed dep-1.0\n" in done.out, done


UNTRUSTED = {"requires": ["acme-provider>=1,<2; python_version > '3'"], "plugin-api": "acme:Plugin"}


def test_untrusted_provider(patched, serve):
    """It does not run. The user is told once, and gets what needs no provider."""
    index = Index()
    index.add_release(Release("one", "1.0", ranked("a", provider=UNTRUSTED)))
    index.add_release(Release("two", "1.0", ranked("a", provider=UNTRUSTED), non_variant=True))
    index.add_release(Release("three", "1.0", ranked("a", provider=UNTRUSTED)))
    index.remove("three", "three-1.0-py3-none-any-null.whl")
    index.add_wheel(Wheel("three", "1.0"))
    index.add_wheel(Wheel("acme-provider", "1.0"))
    done = dry_run(patched, serve(index), "one", "two", "three")
    installs(done, "one-1.0-null", "three-1.0", "two-1.0-null")
    assert done.text.count("acme-provider") == 2  # in one line
    (line,) = (line for line in done.out.splitlines() if "acme-provider" in line)
    assert "allow it with --variant-allow-provider 'acme-provider<2,>=1'" in line
    assert not any("acme" in path for path in index.requests)


def built_against(*releases, of="torch"):
    """Metadata of variants built against releases, labelled by them: t28 against torch 2.8."""
    variants = {
        f"t{release.replace('.', '')}": {"abi_dependency": {of: [release]}} for release in releases
    }
    return metadata(variants, namespaces=["n"], providers={"n": STATIC})


def torch_index(*, requires=()):
    index = Index()
    for version in ("2.7.1", "2.8.0", "2.9.0", "2.10.0"):
        index.add_wheel(Wheel("torch", version))
    index.add_release(Release("ext", "1.0", built_against("2.7", "2.8", "2.9"), requires))
    return index


def test_built_against_another_package(patched, serve):
    """The build that fits is found, whichever of the two is chosen first."""
    index = serve(torch_index(requires=("torch",)))
    index.add_wheel(Wheel("late", "1.0", requires=("torch==2.7.1",)))
    installs(dry_run(patched, index, "torch==2.8.0", "ext"), "ext-1.0-t28", "torch-2.8.0")
    installs(dry_run(patched, index, "ext", "torch<2.8"), "ext-1.0-t27", "torch-2.7.1")
    done = dry_run(patched, index, "ext", "late")
    assert {"ext-1.0-t27", "torch-2.7.1"} < set(done.out.splitlines()[-1].split()), done
    assert "Variant t27 for ext 1.0 instead of t29: built against torch 2.7\n" in done.out


def test_built_against_a_package_with_extras(patched, serve):
    """An extra of a project is a candidate of its own to pip, and the same release."""
    index = serve(torch_index(requires=("torch[x]",)))
    for version in ("2.7.1", "2.8.0", "2.9.0"):
        index.add_wheel(Wheel("torch", version, extras=("x",), requires=("more; extra == 'x'",)))
    index.add_wheel(Wheel("more", "1.0"))
    installs(
        dry_run(patched, index, "torch==2.8.0", "ext"), "ext-1.0-t28", "more-1.0", "torch-2.8.0"
    )
    installs(
        dry_run(patched, index, "ext", "torch[x]<2.8"), "ext-1.0-t27", "more-1.0", "torch-2.7.1"
    )


def test_built_against_what_is_installed(fresh, serve):
    index = serve(torch_index(requires=("torch",)))
    assert fresh.pip("install", "-i", index.url, "torch==2.8.0").code == 0
    installs(dry_run(fresh, index, "ext"), "ext-1.0-t28")
    installs(dry_run(fresh, index, "--upgrade", "ext", "torch"), "ext-1.0-t29", "torch-2.9.0")


def test_what_stays_installed_is_not_broken(fresh, serve):
    """Nothing requires torch here, so pip leaves it: the better build for another is not taken."""
    index = torch_index()
    variants = {
        "t29": {"n": {"f": ["a"]}, "abi_dependency": {"torch": ["2.9"]}},
        "t28": {"n": {"f": ["b"]}, "abi_dependency": {"torch": ["2.8"]}},
        "null": {},
    }
    described = metadata(variants, namespaces=["n"], providers={"n": STATIC})
    index.add_release(Release("own", "1.0", described))
    index.add_release(Release("atop", "1.0", described, ("torch",)))
    index.add_release(Release("stuck", "1.0", described, ("absent; variant_label == 'null'",)))
    serve(index)
    assert fresh.pip("install", "-i", index.url, "torch==2.8.0").code == 0
    for options in ((), ("--upgrade", "--upgrade-strategy", "eager")):
        installs(dry_run(fresh, index, *options, "own"), "own-1.0-t28")
    done = dry_run(fresh, index, "own", "torch>2.8.0")
    installs(done, "own-1.0-t29", "torch-2.9.0")
    assert fresh.pip("install", "-i", index.url, "torch==2.7.1").code == 0
    installs(dry_run(fresh, index, "own"), "own-1.0-null")
    # The null variant fits and cannot be had: what was passed over comes again.
    installs(dry_run(fresh, index, "stuck"), "stuck-1.0-t29")
    installs(dry_run(fresh, index, "atop"), "atop-1.0-t29", "torch-2.9.0")


def test_build_requirements_that_are_installed_in_the_same_process(fresh, serve):
    """They are resolved in the middle of the resolution, and change nothing about it."""
    feature = ("--use-feature", "inprocess-build-deps")
    if "invalid choice" in fresh.pip("download", *feature, "x", "--no-index").err:
        pytest.skip("this pip cannot do that")
    index = torch_index()
    made = SourceDistribution("made", "1.0", build_requires=("ext",))
    index.add("made", made.filename, made.build())
    serve(index)
    done = dry_run(fresh, index, *feature, "torch==2.8.0", "made", "ext")
    installs(done, "ext-1.0-t28", "made-1.0", "torch-2.8.0")
    index.add_release(Release("ext", "0.9", built_against("2.10")))
    done = dry_run(fresh, index, *feature, "made", "ext<1", "torch")
    installs(done, "ext-0.9-t210", "made-1.0", "torch-2.10.0")


@pytest.mark.everywhere
def test_built_against_what_was_installed_and_no_longer_is(fresh, serve):
    """Told as pip tells of requirements that no longer hold: after installing, and by its check."""
    index = serve(torch_index())
    done = fresh.pip("install", "-i", index.url, "torch==2.8.0", "ext")
    assert "ext-1.0-t28" in done.out, done
    assert fresh.pip("check").out == "No broken requirements found.\n"
    why = "torch 2.8.* (variant t28 is built against it)"
    for version, broken in (("2.9.0", True), ("2.8.0", False)):
        done = fresh.pip("install", "-i", index.url, f"torch=={version}")
        assert f"Successfully installed torch-{version}" in done.out, done
        told = f"ext 1.0 requires {why}, but you have torch {version} which is incompatible.\n"
        assert (told in done.err) == broken, done
        check = fresh.pip("check")
        assert check.code == int(broken), check
        told = f"ext 1.0 has requirement {why}, but you have torch {version}.\n"
        assert check.out == (told if broken else "No broken requirements found.\n")
    # The other way round: what is installed now against what is there.
    assert fresh.pip("install", "-i", index.url, "torch==2.10.0").code == 0
    done = fresh.pip("install", "-i", index.url, "--force-reinstall", "--variant", "ext=t27", "ext")
    told = "ext 1.0 requires torch 2.7.* (variant t27 is built against it), but you have torch "
    assert told in done.err, done
    assert fresh.pip("uninstall", "-y", "torch").code == 0
    assert fresh.pip("check").out == "No broken requirements found.\n"


def test_built_against_none_of_what_is_possible(patched, serve):
    index = serve(torch_index())
    done = dry_run(patched, index, "torch==2.10.0", "ext")
    assert done.code == 1
    assert "The user requested torch==2.10.0\n" in done.out
    for label in ("t27", "t28", "t29"):
        release = f"{label[1]}.{label[2:]}"
        assert f"ext 1.0 (variant {label}) depends on torch {release}.*\n" in done.out, done


def test_coherence(fresh, serve, tmp_path):
    """A project takes the build that agrees with another's: pinned, forced or installed."""
    index = Index()
    index.add_release(Release("torch", "2.9", ranked("a", "b", "c"), ("vision",)))
    index.add_release(Release("vision", "0.2", ranked("a", "b")))
    index.add_release(Release("vision", "0.1", ranked("a", "b", "c")))
    serve(index)
    coherent = ("--variant-coherent", "n")
    installs(dry_run(fresh, index, *coherent, "torch"), "torch-2.9-a", "vision-0.2-a")
    forced = ("--variant", "torch=b")
    installs(dry_run(fresh, index, *forced, "torch"), "torch-2.9-b", "vision-0.2-a")
    for wanted in (("torch",), ("vision", "torch")):
        done = dry_run(fresh, index, *coherent, *forced, *wanted)
        installs(done, "torch-2.9-b", "vision-0.2-b")
        text = "Variant b for vision 0.2 instead of a, to agree with torch (b): n f b"
        assert text in done.out
    # Coherence chooses a build, not a version.
    done = dry_run(fresh, index, *coherent, "--variant", "torch=c", "torch")
    installs(done, "torch-2.9-c", "vision-0.2-a")
    assert "No variant of vision 0.2 agrees with torch (c) in 'n'" in done.err
    assert fresh.pip("install", "--no-deps", "-i", index.url, *forced, "torch").code == 0
    installs(dry_run(fresh, index, "vision"), "vision-0.2-a")
    installs(dry_run(fresh, index, *coherent, "vision"), "vision-0.2-b")


def a_wheel(label="cu128", **options):
    own = {**cuda("12.8"), "variants": {label: cuda("12.8")["variants"].get(label, {})}}
    return Wheel(
        "app", "1.0", label, **{"variant_json": own, "requires": app().requires, **options}
    )


def test_direct_file_and_url(patched, serve, tmp_path):
    """What the user names is taken if it fits, and is refused with the reason if not."""
    index = serve(app_index())
    wheel = a_wheel()
    (tmp_path / wheel.filename).write_bytes(wheel.build())
    index.add("direct", wheel.filename, wheel.build())
    for place in (
        str(tmp_path / wheel.filename),
        f"app @ {(tmp_path / wheel.filename).as_uri()}",
        f"{index.url[:-7]}files/direct/{wheel.filename}",
    ):
        done = dry_run(patched, index, place, **CUDA_12_8)
        installs(done, *ON_GPU.split())
        done = dry_run(patched, index, place, **{DRIVER: "12.6"})
        assert done.code == 1
        assert done.err == (
            f"ERROR: {wheel.filename} does not fit this machine: needs CUDA driver 12.8 or newer, "
            "this one supports up to 12.6\n"
        )
        done = dry_run(patched, index, "--no-variants", place, **CUDA_12_8)
        assert (done.code, done.err) == (
            1,
            f"ERROR: {wheel.filename} is a variant wheel, and variants are switched off: "
            "use a non-variant wheel, or run pip without --no-variants or the legacy resolver\n",
        )
    null = a_wheel("null")
    (tmp_path / null.filename).write_bytes(null.build())
    installs(dry_run(patched, index, str(tmp_path / null.filename)), *ON_CPU.split())


@pytest.mark.one
def test_direct_file_that_is_not_what_its_name_says(patched, tmp_path):
    for wheel, problem in (
        (a_wheel(variant_json=None), "is named a variant wheel, but has no variant.json"),
        (a_wheel(variant_json="[]"), "expected an object"),
        (a_wheel(variant_json=cuda("12.8")), "the filename has label 'cu128'"),
    ):
        (tmp_path / wheel.filename).write_bytes(wheel.build())
        done = patched.pip(
            "install", "--dry-run", "--no-index", "--no-deps", str(tmp_path / wheel.filename),
            env=CUDA_12_8,
        )  # fmt: skip
        assert done.code == 1
        assert done.err.startswith(f"ERROR: {tmp_path.as_uri()}/{wheel.filename}"), done
        assert problem in done.err
        assert done.err.count("\n") == 1


def test_constraint_to_a_file(patched, serve, tmp_path):
    index = serve(app_index())
    wheel = a_wheel()
    (tmp_path / wheel.filename).write_bytes(wheel.build())
    (tmp_path / "constraints.txt").write_text(f"app @ {(tmp_path / wheel.filename).as_uri()}\n")
    constraint = ("-c", str(tmp_path / "constraints.txt"))
    installs(dry_run(patched, index, *constraint, "app", **CUDA_12_8), *ON_GPU.split())
