"""A build whose code for one GPU is in other packages of its index: an index and an extra.

As AMD's index of ROCm has it: ``torch[device-gfx1103]``, what it requires is on that index alone,
ROCm itself is a source distribution, and the index answers 403 for what it lacks.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.catalog_places import entry, variant
from support.choices import by_pip, by_resolve, by_uv_lock
from support.environments import PIPS, Environment, Environments
from support.index import Answer, Index
from support.pip_commands import versions
from support.proxies import running_proxy
from support.published_builds import Builds, Field, page_path, standing_in
from support.uvs import Machine, project
from support.wheels import SourceDistribution, Wheel
from uv_variants._environments import installed_versions
from variants_proxy.settings import Settings, Upstream

AMD = "https://stable.repo.amd.com/rocm/whl-next"
LINUX = "py3-none-linux_x86_64"
BUILD, ROCM = "2.13.0+rocm10.0.0", "10.0.0"
DEVICES = ("gfx1103", "gfx1151")
LOCAL = {
    "torch": BUILD,
    "rocm": ROCM,
    "rocm-sdk-core": ROCM,
    "rocm-sdk-libraries": ROCM,
    "rocm-sdk-device-gfx1103": ROCM,
    "amd-torch-device-gfx1103": BUILD,
}
"""What a machine with that GPU gets."""


def wheels() -> Iterator[Wheel]:
    """Yield what AMD's index has."""
    extras = tuple(f"device-{gfx}" for gfx in DEVICES)
    devices = [f"amd-torch-device-{gfx}=={BUILD}; extra == 'device-{gfx}'" for gfx in DEVICES]
    requires = (f"rocm[libraries]=={ROCM}", "helper", *devices)
    yield Wheel("torch", BUILD, tag=LINUX, requires=requires, extras=extras)
    yield Wheel("torch", "2.13.0+rocm10.1.0", tag=LINUX, extras=extras)
    for name in ("rocm-sdk-core", "rocm-sdk-libraries"):
        yield Wheel(name, ROCM, tag=LINUX)
    for gfx in DEVICES:
        sdk = f"rocm-sdk-device-{gfx}"
        yield Wheel(sdk, ROCM, tag=LINUX, requires=(f"rocm-sdk-libraries=={ROCM}",))
        requires = (f"{sdk}=={ROCM}", f"torch=={BUILD}")
        yield Wheel(f"amd-torch-device-{gfx}", BUILD, tag=LINUX, requires=requires)


def entries(place: str) -> Iterator[str]:
    """Yield the entry of torch, and of each distribution that is on AMD's index alone."""
    others = ("rocm", "rocm-sdk-core", "rocm-sdk-libraries")
    devices = [f"{name}-device-{{gfx}}" for name in ("rocm-sdk", "amd-torch")]
    requires = ["{name}[device-{gfx}]=={version}", *others, *devices]
    yield entry(
        "torch",
        [
            f'[[variant]]\nlabel = "rocm10.0_{{gfx}}"\nfor-each = {{ gfx = {list(DEVICES)} }}\n'
            f'index = "{place}"\nlocal = "rocm10.0.0"\nversions = "==2.13.0"\n'
            f"requires = {requires}\n"
            'properties = ["amd :: gfx_arch :: {gfx}"]\n',
            variant("null", ""),
        ],
        more="before-version = true\n",
    ).replace('["nvidia", ', '["amd", ')
    helper = variant("rocm10.0", f'index = "{place}"\nproperties = ["amd :: gfx_arch :: gfx1103"]')
    yield entry("helper", [helper, variant("null", "")]).replace('["nvidia", ', '["amd", ')
    names = [name.replace("{gfx}", gfx) for name in devices for gfx in DEVICES]
    for name in (*others, *names):
        yield entry(name, [variant("null", f'index = "{place}"')], more='placeholder = "<=0.1"\n')


def sdist(*, is_static: bool) -> SourceDistribution:
    """Return ROCm's own distribution."""
    requires = (f"rocm-sdk-core=={ROCM}", f"rocm-sdk-libraries=={ROCM}; extra == 'libraries'")
    static = requires if is_static else None
    return SourceDistribution("rocm", ROCM, requires=static, extras=("libraries",))


@pytest.fixture
def field() -> Iterator[Field]:
    """AMD's index, and the user's own, which has placeholders of some of the names."""
    builds, index = Builds(), Index()
    for wheel in wheels():
        builds.put(f"{AMD}/{wheel.name}/", wheel)
    source = sdist(is_static=True)
    builds.add(page_path(f"{AMD}/rocm/"), source.filename, source.build())
    builds.resources[page_path(f"{AMD}/helper/")] = Answer(403)
    for name in ("rocm", "rocm-sdk-core", "rocm-sdk-libraries", "amd-torch-device-gfx1103"):
        index.add_wheel(Wheel(name, "0.0.1.dev0"))
    for wheel in (Wheel("torch", "2.13.0"), Wheel("torch", "2.14.0"), Wheel("helper", "1.0")):
        index.add_wheel(wheel, metadata_file=True)
    with standing_in(Field(index, builds)) as found:
        yield found


@pytest.fixture
def catalog(field: Field, tmp_path: Path) -> Path:
    folder = tmp_path / "catalog"
    folder.mkdir()
    for text in entries(field.builds.root + page_path(AMD)):
        name = text.split('name = "')[1].partition('"')[0]
        (folder / f"{name}.toml").write_text(text)
    return folder


PLATFORM = "gfx=gfx1103,cpu=zen4"
EXPECTED = {**LOCAL, "helper": "1.0"}


def test_resolve(field: Field, catalog: Path, tmp_path: Path) -> None:
    arguments = ("torch", "-i", field.index.url, f"--variant-catalog={catalog}")
    (tree,) = by_resolve(tmp_path, *arguments, f"--variant-platform={PLATFORM}")
    assert {item["name"]: item["version"] for item in tree["packages"]} == EXPECTED
    urls = {item["name"]: item["url"] for item in tree["packages"]}
    assert all(field.builds.files_url in url for name, url in urls.items() if name != "helper")
    (tree,) = by_resolve(tmp_path, *arguments, "--variant-platform=cpu=zen4")
    assert {item["name"]: item["version"] for item in tree["packages"]} == {"torch": "2.14.0"}


def test_resolve_builds_nothing(field: Field, catalog: Path, tmp_path: Path) -> None:
    """ROCm's own distribution tells its dependencies when it is built: the next best is taken."""
    source = sdist(is_static=False)
    field.builds.add(page_path(f"{AMD}/rocm/"), source.filename, source.build())
    arguments = ("torch", "-i", field.index.url, f"--variant-catalog={catalog}")
    (tree,) = by_resolve(tmp_path, *arguments, f"--variant-platform={PLATFORM}")
    assert {item["name"]: item["version"] for item in tree["packages"]} == {"torch": "2.14.0"}
    (line,) = (line for line in tree["warnings"] if "rocm-10.0.0.tar.gz needs a build" in line)
    assert "run 'pip wheel --no-deps rocm==10.0.0 -w DIR' and add --find-links DIR" in line


def test_pip(field: Field, catalog: Path, fresh: Environment) -> None:
    options = (f"--variant-catalog={catalog}", f"--variant-platform={PLATFORM}")
    done = fresh.pip("install", "-i", field.index.url, *options, "torch")
    assert done.code == 0, done
    installed = {name: version for name, version in versions(fresh).items() if name in EXPECTED}
    assert installed == EXPECTED, done
    assert fresh.pip("check").code == 0


def test_a_proxy(field: Field, catalog: Path, tmp_path: Path, environments: Environments) -> None:
    environment = environments.plain("{}.{}".format(*sys.version_info), PIPS[0])
    upstream = Upstream("main", field.index.url)
    settings = Settings((upstream,), tmp_path / "cache", catalog=str(catalog))
    with running_proxy(settings) as url:
        at = f"{url}/p/{PLATFORM}/simple/"
        found = by_pip(environment, tmp_path, "--ignore-installed", "-i", at, "torch<2.14")
    assert found.versions == EXPECTED, found.text


def test_uv_variants(field: Field, catalog: Path, machine: Machine) -> None:
    (catalog / "helper.toml").unlink()  # a place that lacks a build costs the lock
    options = (f"--variant-catalog={catalog}", f"--variant-platform={PLATFORM}")
    found = by_uv_lock(machine, field.index.url, ["torch"], *options)
    assert {**found.versions, "rocm": ROCM} == EXPECTED, found.text
    here = machine.with_environ({"UV_PYTHON": sys.executable})
    for words in (("sync", "--locked"), ("sync", "--locked", "--reinstall")):
        done = here.run(*options, *words)
        assert done.code == 0, done
        assert dict(installed_versions([machine.work / ".venv"])) == EXPECTED, done


def test_accelerators(field: Field, catalog: Path, machine: Machine) -> None:
    """A group of a lock, from the index alone that has its members; plain uv installs it."""
    settings = {
        "UV_DEFAULT_INDEX": field.index.url,
        "VARIANTS_CATALOG": str(catalog),
        "UV_PYTHON": sys.executable,
    }
    gpu = machine.with_environ({**settings, "VARIANTS_PLATFORM": PLATFORM})
    project(gpu.work, ["torch"])
    (catalog / "helper.toml").unlink()
    done = gpu.run("accelerators", "cpu", "rocm10.0_gfx1103")
    assert done.code == 0, done.err
    text = (gpu.work / "pyproject.toml").read_text()
    assert f'"torch[device-gfx1103]=={BUILD}"' in text
    assert "gfx1151" not in text
    expected = EXPECTED
    done = gpu.run("sync", "--locked")
    assert done.code == 0, done
    assert dict(installed_versions([gpu.work / ".venv"])) == expected, done
    plain = gpu.with_environ({"UV_NO_GROUP": "cpu"})
    assert plain.plain("sync", "--locked", "--reinstall").code == 0
    assert dict(installed_versions([gpu.work / ".venv"])) == expected, done
    done = machine.with_environ({**settings, "VARIANTS_PLATFORM": "cpu=zen4"}).run("sync")
    assert "group cpu" in done.err, done
    assert gpu.run("accelerators", "--check").code == 0
    assert gpu.run("accelerators", "--remove", "rocm10.0_gfx1103", "cpu").code == 0
    assert "amd-torch" not in (gpu.work / "pyproject.toml").read_text()


def test_a_place_that_fails_is_named_where_nothing_fits(
    field: Field, catalog: Path, tmp_path: Path
) -> None:
    """The own wheel is a build that does not fit, and the index with the one that does is down."""
    text = (catalog / "torch.toml").read_text().replace('label = "null"', 'label = "own"')
    own = 'local = ""\nproperties = ["amd :: gfx_arch :: gfx900"]\n'
    (catalog / "torch.toml").write_text(text + own)
    field.builds.faults[""] = Answer(500)
    variants = Path(sys.executable).with_name("variants")
    arguments = ("torch", "-i", field.index.url, f"--variant-catalog={catalog}")
    for machine, is_named in ((PLATFORM, True), ("gfx=gfx1030", False)):
        done = subprocess.run(
            [variants, "resolve", *arguments, f"--variant-platform={machine}"],
            capture_output=True, text=True, cwd=tmp_path, check=False,
        )  # fmt: skip
        assert done.returncode == 1, done
        assert "None of the variants of torch 2.14.0 fits" in done.stderr, done
        assert ("choosing torch without its build rocm10.0_gfx1103" in done.stderr) is is_named
