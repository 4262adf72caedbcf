"""The options, given to pip in each of the ways it takes options."""

from __future__ import annotations

import pytest

from support.index import index_of
from support.projects import CUDA_12_8, cuda, gpu_index
from support.wheels import NVIDIA, Release, Wheel, metadata

BLAS = {
    "static-properties": {"library": ["mkl", "openblas"]},
    "feature-order": ["library"],
}
FANCY = {**BLAS, "static-properties": {"library": ["fancy"]}, "optional": True}

METADATA = metadata(
    {
        "null": {},
        "cu126": {"nvidia": {"cuda_version_lower_bound": ["12.6"]}},
        "cu128": {"nvidia": {"cuda_version_lower_bound": ["12.8"]}},
        "mkl": {"blas": {"library": ["mkl"]}},
        "openblas": {"blas": {"library": ["openblas"]}},
        "fancy": {"fancy": {"library": ["fancy"]}},
    },
    namespaces=["fancy", "nvidia", "blas"],
    providers={"nvidia": NVIDIA, "blas": BLAS, "fancy": FANCY},
)
OLD_DRIVER = """
[metadata]
version = "0.1"
[[provider]]
namespace = "nvidia"
[provider.properties]
cuda_version_lower_bound = ["12.6", "12.5"]
"""

# Options, and the label they lead to; None is the non-variant wheel.
EFFECTS = [
    ({}, "cu128"),
    ({"no-variants": "1"}, None),
    ({"no-variants": "0"}, "cu128"),
    ({"variant": "app=openblas"}, "openblas"),
    ({"variant": "app="}, None),
    ({"variant-prefer": "blas :: library :: openblas"}, "openblas"),
    ({"variant-exclude": "nvidia blas :: library"}, "null"),
    ({"variant-platform": "old-driver.toml"}, "cu126"),
    ({"variant-enable": "fancy"}, "fancy"),
]


def an_index():
    return index_of([Release("app", "1.0", METADATA, non_variant=True)])


def command_line(options, tmp_path):
    """Repeatable options are repeated, as people do."""
    arguments = []
    for name, value in options.items():
        if name == "no-variants":
            arguments += ["--no-variants"] if value == "1" else []
            continue
        values = value.split() if name == "variant" else [value]
        arguments += [f"--{name}={item}" for item in values]
    return arguments, {}


def environment_variables(options, tmp_path):
    return [], {f"PIP_{name.upper().replace('-', '_')}": text for name, text in options.items()}


def configuration_file(options, tmp_path):
    lines = [f"{name} = {value}" for name, value in options.items()]
    (tmp_path / "pip.conf").write_text("\n".join(["[install]", *lines]))
    return [], {"PIP_CONFIG_FILE": str(tmp_path / "pip.conf")}


def own_variables(options, tmp_path):
    names = {name: name.removeprefix("variant-").upper().replace("-", "_") for name in options}
    return [], {f"VARIANTS_{names[name]}": text for name, text in options.items()}


def dry_run(environment, index, arguments=(), env=(), *, wanted="app", cwd=None):
    return environment.pip(
        "install", "--dry-run", "-i", index.url, *arguments, wanted,
        env={**CUDA_12_8, **dict(env)}, cwd=cwd,
    )  # fmt: skip


def check_effect(environment, index, way, options, label, tmp_path):
    (tmp_path / "old-driver.toml").write_text(OLD_DRIVER)
    done = dry_run(environment, index, *way(options, tmp_path), cwd=tmp_path)
    assert (done.code, done.err) == (0, ""), done
    expected = "app-1.0" if label is None else f"app-1.0-{label}"
    assert f"Would install {expected}\n" in done.out, done


@pytest.mark.parametrize(("options", "label"), EFFECTS, ids=str)
def test_on_the_command_line(patched, serve, tmp_path, options, label):
    check_effect(patched, serve(an_index()), command_line, options, label, tmp_path)


@pytest.mark.one
@pytest.mark.parametrize("way", [environment_variables, configuration_file, own_variables])
def test_in_other_places(patched, serve, tmp_path, way):
    index = serve(an_index())
    for options, label in EFFECTS[1:]:
        check_effect(patched, index, way, options, label, tmp_path)


@pytest.mark.one
def test_in_our_own_file(patched, serve, tmp_path):
    index = serve(an_index())
    (tmp_path / "variants.toml").write_text('prefer = ["blas"]\n')
    assert "app-1.0-mkl\n" in dry_run(patched, index, cwd=tmp_path).out
    # What is given counts more.
    done = dry_run(patched, index, ["--variant-prefer", "nvidia"], cwd=tmp_path)
    assert "app-1.0-cu128\n" in done.out
    (tmp_path / "variants.toml").write_text("prefers = 1\n")
    done = dry_run(patched, index, cwd=tmp_path)
    # A checkout must not keep pip from working.
    assert "app-1.0-cu128\n" in done.out, done
    (line,) = done.err.splitlines()
    assert line.startswith(f"WARNING: {tmp_path / 'variants.toml'}: prefers: unknown key"), done


MISTAKES = {
    "--variant": ["app==1.0"],
    "--variant-prefer": ["a::b::c::d"],
    "--variant-exclude": ["nvidia::"],
    "--variant-platform": ["broken.toml"],
    "--variant-enable": ["fancy :: library"],
}


@pytest.mark.one
@pytest.mark.parametrize(
    ("option", "value"), [(name, value) for name, values in MISTAKES.items() for value in values]
)
def test_mistakes(patched, serve, tmp_path, option, value):
    """They are errors that name option and value, on an index without any variant as well."""
    index = an_index()
    index.add_wheel(Wheel("other", "1.0"))
    (tmp_path / "broken.toml").write_text("= 1")
    done = dry_run(patched, serve(index), [option, value], cwd=tmp_path)
    assert done.code == 1
    assert done.err.count("\n") == 1
    assert done.err.startswith("ERROR: "), done
    named = value if value.endswith(".toml") else option
    assert named in done.err
    if not value.endswith(".toml"):
        assert dry_run(patched, index, [option, value], wanted="other").err == done.err


@pytest.mark.one
def test_unknown_option(patched):
    done = patched.pip("install", "--variant-prefers", "x", "app")
    assert done.code == 2
    assert "no such option: --variant-prefers" in done.err


@pytest.mark.one
def test_help(patched):
    done = patched.pip("install", "--help")
    assert "Variant Options:" in done.out
    for option in ("--no-variants", "--variant <name=label>", "--variant-platform <machine>"):
        assert option in done.out, done


def last_line(done):
    assert done.code == 1, done
    assert "Traceback" not in done.text
    line = done.err.splitlines()[-1]
    assert line.startswith("ERROR: ")
    return line


def test_forced_label_that_does_not_exist(patched, serve):
    index = serve(an_index())
    error = last_line(dry_run(patched, index, ["--variant", "app=cu127"]))
    assert "app 1.0 has no variant 'cu127', which --variant app=cu127 asks for" in error
    assert "there are: cu126, cu128, fancy, mkl, null, openblas" in error


def test_forced_label_that_does_not_fit(patched, serve, tmp_path):
    (tmp_path / "old-driver.toml").write_text(OLD_DRIVER)
    arguments = ["--variant", "app=cu128", "--variant-platform", "old-driver.toml"]
    error = last_line(dry_run(patched, serve(an_index()), arguments, cwd=tmp_path))
    assert "variant 'cu128' of app 1.0" in error
    assert "needs CUDA driver 12.8 or newer, this one supports up to 12.6" in error
    assert "Variants that fit: cu126, mkl, openblas, null" in error


@pytest.mark.one
def test_forced_label_of_a_project_without_variants(patched, serve):
    index = an_index()
    index.add_wheel(Wheel("other", "1.0"))
    serve(index)
    error = last_line(dry_run(patched, index, ["--variant", "other=x"], wanted="other"))
    assert "other 1.0 has no variant 'x'" in error
    # That project is not asked for here.
    assert dry_run(patched, index, ["--variant", "other=x"]).code == 0


@pytest.mark.one
def test_forced_label_of_the_users_file_for_a_project_without_variants(patched, serve, tmp_path):
    """It is an error wherever the label is asked for, also where nothing else reads settings."""
    index = an_index()
    index.add_wheel(Wheel("other", "1.0"))
    serve(index)
    folder = tmp_path / "config" / "variants"
    folder.mkdir(parents=True)
    (folder / "variants.toml").write_text("variant = ['other=x']\n")
    user = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    error = last_line(dry_run(patched, index, env=user, wanted="other", cwd=tmp_path))
    assert "other 1.0 has no variant 'x'" in error
    assert dry_run(patched, index, ["--isolated"], user, wanted="other", cwd=tmp_path).code == 0
    # What is wrong with settings does not concern those who install plain wheels.
    for text in ("allow-provider = 'p'", "= broken"):
        for path in (tmp_path / "variants.toml", folder / "variants.toml"):
            path.write_text(text)
            path.chmod(0o666)
        done = dry_run(patched, index, env=user, wanted="other", cwd=tmp_path)
        assert (done.code, done.err) == (0, ""), done


@pytest.mark.one
def test_forced_label_that_only_an_older_version_has(patched, serve):
    index = serve(
        index_of([Release("app", "1.0", cuda("12.6")), Release("app", "2.0", cuda("12.8"))])
    )
    done = dry_run(patched, index, ["--variant", "app=cu126"])
    assert "Would install app-1.0-cu126\n" in done.out, done
    assert "Variant cu126 for app 1.0: asked for\n" in done.out


@pytest.mark.one
def test_forced_label_with_broken_metadata(patched, serve):
    index = an_index()
    index.add("app", "app-1.0-variants.json", b"[]")
    error = last_line(dry_run(patched, serve(index), ["--variant", "app=cu128"]))
    assert f"{index.url[:-7]}files/app/app-1.0-variants.json: expected an object" in error


@pytest.mark.one
def test_forced_label_beside_what_is_installed(fresh, serve):
    index = serve(an_index())
    urls = ("-i", index.url)
    assert fresh.pip("install", *urls, "app", env=CUDA_12_8).code == 0
    same = fresh.pip("install", *urls, "--variant", "app=cu128", "app", env=CUDA_12_8)
    assert same.code == 0, same
    assert "Requirement already satisfied" in same.out
    for label, installed in (("cu126", "as variant cu128"), ("", "as variant cu128")):
        other = fresh.pip("install", *urls, "--variant", f"app={label}", "app", env=CUDA_12_8)
        error = last_line(other)
        assert f"app 1.0 is installed already, {installed}" in error
        assert "--variant-switch" in error
    forced = ("--variant-switch", "--variant", "app=")
    done = fresh.pip("install", *urls, *forced, "app", env=CUDA_12_8)
    assert "Successfully installed app-1.0\n" in done.out, done
    error = last_line(fresh.pip("install", *urls, "--variant", "app=mkl", "app", env=CUDA_12_8))
    assert "app 1.0 is installed already, without variant" in error


@pytest.mark.one
def test_legacy_resolver_refuses_what_it_cannot_do(patched, serve):
    arguments = ["--use-deprecated", "legacy-resolver", "--variant", "app=mkl"]
    error = last_line(dry_run(patched, serve(an_index()), arguments))
    assert error == "ERROR: --variant has no effect with the legacy resolver"


@pytest.mark.one
def test_for_another_python_of_this_machine(patched, serve, tmp_path):
    """pip takes the platform of this machine then, so its GPU and what overrides it count."""
    index = serve(an_index())
    arguments = ["download", "-d", str(tmp_path), "--only-binary=:all:", "--python-version", "3.9"]
    options = ("-i", index.url, "--variant-exclude", "blas")
    done = patched.pip(*arguments, *options, "app", env=CUDA_12_8)
    names = [path.name for path in tmp_path.glob("*.whl")]
    assert names == ["app-1.0-py3-none-any-cu128.whl"], done


def test_names_that_match_nothing(patched, serve):
    """What is misspelled on the command line is said; what a variable sets is for all commands."""
    index = serve(an_index())
    done = dry_run(
        patched,
        index,
        ["--variant=appp=cu126", "--variant-exclude=nvidai", "--variant-enable=fancyy"],
    )
    assert "--variant appp=cu126: this command has no project appp" in done.err
    assert "--variant-exclude 'nvidai' matches no variant of this command" in done.err
    assert "--variant-enable 'fancyy' matches no variant of this command" in done.err
    assert "app-1.0-cu128" in done.out
    quiet = dry_run(patched, index, (), {"PIP_VARIANT_EXCLUDE": "nvidai", "PIP_VARIANT": "appp=x"})
    assert "matches no variant" not in quiet.err
    assert "nothing to do with" not in quiet.err


@pytest.mark.everywhere
def test_versions_without_variants(patched, serve):
    index = gpu_index()
    index.add_wheel(Wheel("gpu", "1.0"))
    serve(index)
    for options, versions in (((), "2.0, 1.0"), (("--no-variants",), "1.0")):
        done = patched.pip("index", "versions", *options, "-i", index.url, "gpu", env=CUDA_12_8)
        assert f"Available versions: {versions}\n" in done.out, done
