"""The catalogue of existing builds in pip: other indexes, extras; faults of places, mirrors.

Builds that publishers have under other names are in `test_pip_published_names`.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
import tomli

from support.catalog_places import (
    family,
    family_entries,
    numbered_entry,
    page,
    place_url,
    pytorch,
    variant,
)
from support.environments import PIPS
from support.index import Answer, Index
from support.patched_pip import patched_pip
from support.pip_commands import dry_run, installs, versions
from support.projects import DRIVER, GPU
from support.published_builds import standing_in
from support.wheels import NVIDIA, Release, Wheel, metadata

CUDA_12, CUDA_13, NO_GPU = ({DRIVER: version} for version in ("12.8", "13.0", "11.0"))
CUDA_128 = ("cudalib-128", "torch-2.9.0+cu128-cuda12.8")
CUDA_126 = ("cudalib-126", "torch-2.9.0+cu126-cuda12.6")
PLAIN = "torch-2.9.0"


@pytest.fixture
def field():
    """PyTorch's places, and the user's own index with builds without local version."""
    with standing_in(pytorch()) as found:
        yield found


@pytest.fixture
def places(field):
    return field.builds


@pytest.fixture
def index(field):
    return field.index


@pytest.fixture
def catalog(places, tmp_path):
    """The option that names a directory with entries of torch and torchvision."""
    family_entries(places, tmp_path / "catalog")
    return ("--variant-catalog", str(tmp_path / "catalog"))


@pytest.mark.everywhere
def test_install(fresh, index, catalog):
    """The build for the machine; again there is nothing to do; a better machine is advice."""
    options = ("-i", index.url, *catalog)
    done = fresh.pip("install", *options, "torch", env=CUDA_12)
    assert (done.code, done.err) == (0, ""), done
    assert "Variant cuda12.8 for torch 2.9.0+cu128: CUDA driver 12.8 or newer" in done.out, done
    assert f"Successfully installed {' '.join(CUDA_128)}\n" in done.out, done
    assert versions(fresh) == {"torch": "2.9.0+cu128", "cudalib": "128"}
    assert fresh.pip("check").code == 0
    for more in ((), ("--upgrade",)):
        done = fresh.pip("install", *options, *more, "torch", env=CUDA_12)
        assert (done.code, done.err) == (0, ""), done
        assert "Successfully" not in done.out, done
        assert "to switch" not in done.out, done
    done = fresh.pip("install", *options, "--upgrade", "torch", env=CUDA_13)
    assert "Successfully" not in done.out, done
    assert "torch 2.9.0+cu128 is installed as variant cuda12.8; variant cuda13.0 fits" in done.out
    # Another project agrees with what is installed, until that is switched.
    done = dry_run(fresh, index, *catalog, "torchvision", **CUDA_13)
    installs(done, "torchvision-0.9.0+cu128-cuda12.8")
    done = fresh.pip("install", *options, "--variant-switch", "torch", env=CUDA_13)
    assert "torch-2.9.0+cu130-cuda13.0\n" in done.out, done
    assert versions(fresh) == {"torch": "2.9.0+cu130", "cudalib": "130"}


@pytest.mark.one
def test_what_counts(patched, index, places, catalog, tmp_path):
    """Without the option, or with an index of the user's choice, nothing of the catalogue."""
    # A project's file does not bring a catalogue.
    (tmp_path / "variants.toml").write_text(f'catalog = "{catalog[1]}"\n')
    wanted = ("install", "--dry-run", "-i", index.url, "torch")
    installs(patched.pip(*wanted, env=CUDA_12, cwd=tmp_path), PLAIN)
    for more in ((*catalog, "--no-variants"), (*catalog, "--variant", "torch=")):
        installs(dry_run(patched, index, *more, "torch"), PLAIN)
    assert places.requests == []
    # A place of the entry as an index of the user's own.
    own = place_url(places, "cu126")
    done = dry_run(patched, index, *catalog, "--extra-index-url", own, "torch")
    installs(done, "cudalib-126", "torch-2.9.0+cu126")
    left_out = f"The catalogue is left out for torch: {own} is one of your indexes"
    assert done.out.count(left_out) == 1
    done = dry_run(patched, index, "--no-index", *catalog, "torch")
    assert "No matching distribution found for torch" in done.err
    installs(dry_run(patched, index, *catalog, "torch==2.9.0+cu126"), *CUDA_126)
    done = dry_run(patched, index, *catalog, "torch===2.9.0")
    installs(done, PLAIN)
    assert "Left out the builds of torch 2.9.0 with a local version" in done.err
    done = dry_run(patched, index, *catalog, "torch==2.9.0+cu130")
    assert "\n  cuda13.0  needs CUDA driver 13.0 or newer" in done.err
    installs(dry_run(patched, index, *catalog, "torch", **NO_GPU), "torch-2.9.0+cpu-null")
    # torch and torchvision are of one build, also of one that is forced.
    forced = ("--variant", "torch=cuda12.6")
    done = dry_run(patched, index, *catalog, *forced, "torchvision", **CUDA_13)
    installs(done, *CUDA_126, "torchvision-0.9.0+cu126-cuda12.6")
    (tmp_path / "c.txt").write_text("torch==2.9.0+cu126\n")
    for names in (["torchvision"], ["torchvision", "torch"]):
        done = dry_run(patched, index, *catalog, *names, "-c", str(tmp_path / "c.txt"))
        installs(done, *CUDA_126, "torchvision-0.9.0+cu126-cuda12.6")
    # Versions with variant wheels of their own are not the catalogue's.
    tree = metadata(
        {"null": {}, "own": {"nvidia": {"cuda_version_lower_bound": ["12.0"]}}},
        namespaces=["nvidia"], providers={"nvidia": NVIDIA},
    )  # fmt: skip
    index.add_release(Release("torch", "2.9.0", tree))
    installs(dry_run(patched, index, *catalog, "torch"), "torch-2.9.0-own")


@pytest.mark.one
def test_places_that_are_asked(fresh, patched, index, places, catalog):
    """Not those of builds for accelerators without one, unless such a build is named or here."""

    def asked(environment, *wanted, **machine):
        places.requests.clear()
        done = dry_run(environment, index, *catalog, *wanted, **machine)
        pages = {path.split("/")[4] for path in places.requests if path.endswith("/")}
        return pages, done

    none = {DRIVER: ""}
    pages, done = asked(patched, "torchvision", **none)
    installs(done, "torch-2.9.0+cpu-null", "torchvision-0.9.0+cpu-null")
    assert pages == {"cpu"}
    assert "Variant null for torch 2.9.0+cpu: no other variant fits" in done.out
    everything = {"cpu", "cu126", "cu128", "cu130"}
    pages, done = asked(patched, "torch==2.9.0+cu128", **none)
    assert (pages, done.code) == (everything, 1)
    assert "cuda12.8  " in done.err, done
    pages, done = asked(patched, "torchvision", "--variant", "torch=cuda12.8", **none)
    assert (pages, done.code) == (everything, 1)
    assert asked(patched, "torch", **CUDA_12)[0] == everything
    assert fresh.pip("install", "-i", index.url, *catalog, "torch", env=CUDA_12).code == 0
    assert asked(fresh, "torchvision", **none)[0] == everything


@pytest.mark.everywhere
def test_a_place_fails(patched, index, places, catalog):
    """C7: one line for a host, for all projects; the next best is taken."""
    for fault, reason in (
        (Answer(403), "403 Client Error: Forbidden"),
        (Answer(401), "401 Client Error: Unauthorized"),
        (Answer(200, b"%PDF", "application/pdf"), "it is application/pdf, no page of links"),
    ):
        places.faults[page("cu128")] = fault
        done = dry_run(patched, index, *catalog, "torch")
        installs(done, *CUDA_126)
        assert done.err == (
            f"WARNING: Cannot reach {places.root}: {reason}; choosing torch without its build "
            f"cuda12.8 (for a mirror: --variant-catalog-mirror {places.root}=URL)\n"
        ), done
    # A host that failed is asked once for the page of the next project.
    failing = [page("cu128", name) for name in ("torchvision", "torch")]
    places.faults |= dict.fromkeys(failing, Answer(500))
    places.requests.clear()
    done = dry_run(patched, index, *catalog, "torchvision")
    installs(done, *CUDA_126, "torchvision-0.9.0+cu126-cuda12.6")
    assert "500 error responses; choosing torchvision, torch without its build" in done.err, done
    assert [places.requests.count(path) for path in failing] == [3, 1]
    mirror = ("--variant-catalog-mirror", f"{places.root}=http://127.0.0.1:9")
    done = dry_run(patched, index, *catalog, *mirror, "torchvision")
    installs(done, PLAIN, "torchvision-0.9.0")
    labels = "builds cuda12.8, cuda12.6, null"  # of those that fit: the driver is for CUDA 12.8
    assert done.err == (
        "WARNING: Cannot reach http://127.0.0.1:9: Connection refused; choosing torchvision, torch "
        f"without its {labels}\n"
    ), done


@pytest.mark.one
def test_mirrors_files_and_urls(patched, environments, available, field, index, places, catalog):
    """A catalogue of a server, one that is down, and the default one, also in pip's zip file."""
    places.faults["/catalog.toml"] = Answer(200, Path(catalog[1], "torch.toml").read_bytes())
    url = f"{places.root}/catalog.toml"
    installs(dry_run(patched, index, "--variant-catalog", url, "torch"), *CUDA_128)
    gone = ("--variant-catalog", f"{url}2", "torch")
    problem = f"{url}2: cannot be fetched: 404 Client Error: Not Found"
    done = dry_run(patched, index, *gone)
    line = f"ERROR: {problem}; --allow-missing-sources goes on without it\n"
    assert (done.code, done.err) == (1, line), done
    done = dry_run(patched, index, "--allow-missing-sources", *gone)
    installs(done, PLAIN)
    assert f"WARNING: The catalogue is left out: {problem}\n" in done.err
    done = dry_run(patched, index, "--variant-catalog", "/no.toml", "torch")
    assert (done.code, done.err[:7], "no.toml" in done.err) == (1, "ERROR: ", True), done
    (mirror,) = field.mirrors
    options = ("install", "--dry-run", "--no-deps", "-i", index.url, "torch==2.9.0")
    default = ("--variant-catalog", "default", "--variant-catalog-mirror", mirror)
    env = {**CUDA_12, GPU: "9.0"}
    installs(patched.pip(*options, *default, env=env), CUDA_128[1])
    wheel = patched_pip(environments, PIPS[-1])
    plain = environments.plain(available.python, PIPS[-1])
    installs(plain.run(f"{wheel}/pip", *options, *default, env=env), CUDA_128[1])


@pytest.mark.everywhere
def test_hashes_and_reports(patched, index, places, catalog, tmp_path):
    """All name the publisher's file, with its URL and hash."""
    wheels = family("2.9.0", "cu126")[0], Wheel("cudalib", "126")
    listed, report = tmp_path / "list.txt", tmp_path / "report.json"
    listed.write_text(
        "".join(
            f"{wheel.name}=={wheel.version.partition('+')[0]} "
            f"--hash=sha256:{hashlib.sha256(wheel.build()).hexdigest()}\n"
            for wheel in wheels
        )
    )
    hashes = ("--require-hashes", "-r", str(listed), "--report", str(report))
    done = dry_run(patched, index, *catalog, "--variant", "torch=cuda12.6", *hashes)
    installs(done, *CUDA_126)
    items = {item["metadata"]["name"]: item for item in json.loads(report.read_text())["install"]}
    file = f"{places.files_url}/files{page('cu126')}torch-2.9.0%2Bcu126-py3-none-any.whl"
    assert items["torch"]["download_info"]["url"] == file
    assert items["torch"]["variant_label"] == "cuda12.6"


@pytest.fixture
def jax(serve, tmp_path):
    """jax, whose builds are extras: its own wheel with other dependencies; options for it."""
    index = Index(metadata_hashes=True)
    plugins = {number: f"jax-cuda{number}-plugin" for number in ("12", "13")}
    requires = [f"{name}==0.10.2; extra == 'cuda{number}'" for number, name in plugins.items()]
    wheel = Wheel("jax", "0.10.2", requires=tuple(requires), extras=("cuda12", "cuda13"))
    index.add_wheel(wheel, metadata_file=True)
    for name in plugins.values():
        index.add_wheel(Wheel(name, "0.10.2"))
    index.add_wheel(Wheel("app", "1.0", requires=("jax[cuda12]",)))
    path = tmp_path / "jax.toml"
    path.write_text(numbered_entry("jax", "{{name}}[cuda{}]=={{version}}", variant("null", "")))
    return serve(index), ("--variant-catalog", str(path))


@pytest.mark.everywhere
def test_an_extra(fresh, jax):
    index, options = jax
    options = ("-i", index.url, *options)
    plugin = "jax-cuda13-plugin-0.10.2"
    done = fresh.pip("install", *options, "jax", env=CUDA_13)
    assert (done.code, done.err) == (0, ""), done
    assert f"Successfully installed jax-0.10.2-cuda13 {plugin}\n" in done.out, done
    (folder,) = fresh.site_packages.glob("jax-0.10.2.dist-info")
    assert (folder / "METADATA").read_text().count("Requires-Dist") == 3
    assert fresh.pip("check").code == 0
    # The dependencies are those of the variant, also of one that is installed.
    fresh.pip("uninstall", "-y", "jax-cuda13-plugin")
    done = fresh.pip("install", *options, "-U", "jax", env=CUDA_13)
    assert f"Successfully installed {plugin}\n" in done.out, done
    assert "to switch" not in done.out, done
    done = fresh.pip("install", *options, "--variant-switch", "jax", env=CUDA_12)
    line = "Successfully installed jax-0.10.2-cuda12 jax-cuda12-plugin-0.10.2\n"
    assert line in done.out, done


@pytest.mark.one
def test_an_extra_in_other_commands(patched, jax, tmp_path):
    """No variant fits, one is forced, an extra is required beside it; hashes, locks."""
    index, options = jax
    installs(dry_run(patched, index, *options, "jax", **NO_GPU), "jax-0.10.2")
    forced = ("--variant", "jax=cuda12", "jax")
    done = dry_run(patched, index, *options, *forced, **CUDA_13)
    installs(done, "jax-0.10.2-cuda12", "jax-cuda12-plugin-0.10.2")
    done = dry_run(patched, index, *options, *forced, **NO_GPU)
    assert "variant 'cuda12' of jax 0.10.2" in done.err, done
    done = dry_run(patched, index, *options, "app", **CUDA_13)
    assert "jax-0.10.2-cuda13 jax-cuda12-plugin-0.10.2 jax-cuda13-plugin-0.10.2" in done.out, done
    (data,) = index.files["jax"].values()
    digest = hashlib.sha256(data).hexdigest()
    (tmp_path / "requirements.txt").write_text(f"jax==0.10.2 --hash=sha256:{digest}\n")
    listed = ("--no-deps", "--require-hashes", "-r", str(tmp_path / "requirements.txt"))
    done = dry_run(patched, index, *options, *listed, **CUDA_13)
    installs(done, "jax-0.10.2")
    assert "Hashes of jax are given: its builds under another name or with other" in done.out, done
    lock = tmp_path / "pylock.toml"
    done = patched.pip("lock", "-i", index.url, *options, "-o", str(lock), "jax", env=CUDA_13)
    assert done.code == 0, done
    packages = {item["name"]: item for item in tomli.loads(lock.read_text())["packages"]}
    assert sorted(packages) == ["jax", "jax-cuda13-plugin"]
    (wheel,) = packages["jax"]["wheels"]
    assert wheel["hashes"] == {"sha256": digest}
    done = patched.pip("install", "--dry-run", "-r", str(lock), env=NO_GPU)
    installs(done, "jax-0.10.2", "jax-cuda13-plugin-0.10.2")
