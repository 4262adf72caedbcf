"""The catalogue of existing builds in pip: other indexes, extras; faults of places, mirrors.

Builds that publishers have under other names are in `test_pip_published_names`.
"""

from __future__ import annotations

import hashlib
import json

import pytest
import tomli

from support.catalog_places import Places, entry, served_places, variant
from support.environments import PIPS
from support.index import Index
from support.patched_pip import patched_pip
from support.pip_commands import dry_run, installs, versions
from support.projects import DRIVER, GPU
from support.wheels import NVIDIA, Release, Wheel, metadata

CUDA_12 = {DRIVER: "12.8"}
CUDA_13 = {DRIVER: "13.0"}
NO_GPU = {DRIVER: "11.0"}
CUDA_128 = ("cudalib-128", "torch-2.9.0+cu128-cuda12.8")
CUDA_126 = ("cudalib-126", "torch-2.9.0+cu126-cuda12.6")
PLAIN = ("cudalib-1", "torch-2.9.0")


def torch(version: str, local: str) -> Wheel:
    requires = (f"cudalib=={local[2:]}",) if local.startswith("cu") else ()
    return Wheel("torch", f"{version}+{local}", requires=requires)


@pytest.fixture
def places():
    """PyTorch's index: torch and torchvision for three CUDA versions, and for the CPU."""
    found = Places()
    for name in ("cu130", "cu128", "cu126", "cpu"):
        for version in ("2.8.0", "2.9.0"):
            found.add(name, torch(version, name))
            vision = f"0.{version.split('.')[1]}.0+{name}"
            found.add(name, Wheel("torchvision", vision, requires=(f"torch=={version}",)))
    found.add("cpu", Wheel("torch", "2.9.0", tag="cp312-none-macosx_11_0_arm64"))
    found.without_hashes.add("/whl/cu126/torch/")
    with served_places(found):
        yield found


@pytest.fixture
def index(serve):
    """The user's own index: CUDA builds without local version, as on PyPI."""
    index = Index()
    for version in ("2.8.0", "2.9.0"):
        index.add_wheel(Wheel("torch", version, requires=("cudalib==1",)))
        vision = f"0.{version.split('.')[1]}.0"
        index.add_wheel(Wheel("torchvision", vision, requires=(f"torch=={version}",)))
    for version in ("1", "126", "128", "130"):
        index.add_wheel(Wheel("cudalib", version))
    return serve(index)


@pytest.fixture
def catalog(places, tmp_path):
    """A directory with entries of torch and torchvision."""
    folder = tmp_path / "catalog"
    folder.mkdir()
    bounds = [("cu130", "13.0"), ("cu128", "12.0"), ("cu126", "12.0")]
    for name, other in (("torch", "torchvision"), ("torchvision", "torch")):
        tables = [
            variant(
                f"cuda{local[2:4]}.{local[4:]}",
                f'index = "{places.place(local)}"\nlocal = "{local}"',
                cuda=bound,
                order=number,
            )
            for number, (local, bound) in enumerate(bounds, 1)
        ]
        null = f'index = "{places.place("cpu")}"\nlocal = ["cpu", ""]'
        text = entry(name, [*tables, variant("null", null)], coherent=[other])
        (folder / f"{name}.toml").write_text(text)
    return ("--variant-catalog", str(folder))


@pytest.mark.everywhere
def test_install(fresh, index, catalog):
    """The build for the machine; again there is nothing to do; a better machine is advice."""
    options = ("-i", index.url, *catalog)
    done = fresh.pip("install", *options, "torch", env=CUDA_12)
    assert (done.code, done.err) == (0, ""), done
    assert "Variant cuda12.8 for torch 2.9.0+cu128: CUDA driver 12.0 or newer" in done.out, done
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


def test_together(patched, index, catalog):
    """torch and torchvision of one build, whichever is named first, forced, or lacks one."""

    def both(local, label):
        return f"torch-2.9.0+{local}-{label}", f"torchvision-0.9.0+{local}-{label}"

    done = dry_run(patched, index, *catalog, "torchvision", **CUDA_13)
    installs(done, "cudalib-130", *both("cu130", "cuda13.0"))
    forced = ("--variant", "torch=cuda12.6")
    done = dry_run(patched, index, *catalog, *forced, "torchvision", **CUDA_13)
    installs(done, "cudalib-126", *both("cu126", "cuda12.6"))
    done = dry_run(patched, index, *catalog, "torchvision", "torch", **NO_GPU)
    installs(done, *both("cpu", "null"))
    assert "driver" in done.out


@pytest.mark.one
def test_what_counts(patched, index, places, catalog, tmp_path):
    """Without the option, or with an index of the user's choice, nothing of the catalogue."""
    # A project's file does not bring a catalogue.
    (tmp_path / "variants.toml").write_text(f'catalog = "{catalog[1]}"\n')
    wanted = ("install", "--dry-run", "-i", index.url, "torch")
    installs(patched.pip(*wanted, env=CUDA_12, cwd=tmp_path), *PLAIN)
    for more in (
        (*catalog, "--no-variants"),
        (*catalog, "--variant", "torch="),
        ("--variant-catalog", "none"),
    ):
        installs(dry_run(patched, index, *more, "torch"), *PLAIN)
    assert places.requests == []
    # A place of the entry as an index of the user's own.
    own = places.place("cu126")
    done = dry_run(patched, index, *catalog, "--extra-index-url", own, "torch")
    installs(done, "cudalib-126", "torch-2.9.0+cu126")
    left_out = f"The catalogue is left out for torch: {own} is one of your indexes"
    assert done.out.count(left_out) == 1
    done = dry_run(patched, index, "--no-index", *catalog, "torch")
    assert "No matching distribution found for torch" in done.err
    done = dry_run(patched, index, *catalog, "torch==2.8.0")
    installs(done, "cudalib-128", "torch-2.8.0+cu128-cuda12.8")
    installs(dry_run(patched, index, *catalog, "torch==2.9.0+cu126"), *CUDA_126)
    # Versions with variant wheels of their own are not the catalogue's.
    tree = metadata(
        {"null": {}, "own": {"nvidia": {"cuda_version_lower_bound": ["12.0"]}}},
        namespaces=["nvidia"], providers={"nvidia": NVIDIA},
    )  # fmt: skip
    index.add_release(Release("torch", "2.9.0", tree))
    installs(dry_run(patched, index, *catalog, "torch"), "torch-2.9.0-own")


@pytest.mark.everywhere
def test_a_place_fails(patched, index, places, catalog):
    """C7: one line for a host, for all projects; the next best is taken."""
    for fault, reason in (
        ((403, "text/plain", b"no"), "403 Client Error"),
        ((200, "text/html", b"<form>Log in</form>"), "lists no wheels"),
        ((200, "application/pdf", b"%PDF"), "it is application/pdf, no page of links"),
    ):
        places.faults["/whl/cu128/torch/"] = fault
        done = dry_run(patched, index, *catalog, "torch")
        installs(done, *CUDA_126)
        line = f"WARNING: torch: variant cuda12.8 from {places.url} cannot be had: {reason}"
        assert done.err.startswith(line), done
        assert done.err.endswith(f" (for a mirror: --variant-catalog-mirror {places.url}=URL)\n")
        assert done.err.count("\n") == 1, done
    mirror = ("--variant-catalog-mirror", f"{places.url}=http://127.0.0.1:9")
    done = dry_run(patched, index, *catalog, *mirror, "torchvision")
    installs(done, *PLAIN, "torchvision-0.9.0")
    labels = "variants cuda13.0, cuda12.8, cuda12.6 and 1 more"
    assert done.err == (
        f"WARNING: torchvision, torch: {labels} from http://127.0.0.1:9 cannot be had: "
        "Connection refused (for a mirror: --variant-catalog-mirror http://127.0.0.1:9=URL)\n"
    ), done


@pytest.mark.one
def test_mirrors_files_and_urls(patched, index, places, catalog, tmp_path):
    """A mirror of a place; a catalogue of one file, and from a server, also one that is down."""
    text = (tmp_path / "catalog" / "torch.toml").read_text()
    moved = tmp_path / "torch.toml"
    moved.write_text(text.replace(f"{places.url}/whl", "http://127.0.0.1:9/pytorch"))
    mirror = ("--variant-catalog-mirror", f"http://127.0.0.1:9/pytorch={places.url}/whl")
    done = dry_run(patched, index, "--variant-catalog", str(moved), *mirror, "torch")
    installs(done, *CUDA_128)
    places.files["/catalog.toml"] = text.encode()
    url = f"{places.url}/catalog.toml"
    installs(dry_run(patched, index, "--variant-catalog", url, "torch"), *CUDA_128)
    done = dry_run(patched, index, "--variant-catalog", f"{url}2", "torch")
    installs(done, *PLAIN)
    assert f"WARNING: The catalogue {url}2 is left out: 403 Client Error" in done.err
    done = dry_run(patched, index, "--variant-catalog", str(tmp_path / "no.toml"), "torch")
    assert (done.code, done.err[:7], "no.toml" in done.err) == (1, "ERROR: ", True), done


@pytest.mark.everywhere
def test_hashes_and_reports(patched, index, places, catalog, tmp_path):
    """All name the publisher's file, with its URL and hash."""
    digest = hashlib.sha256(torch("2.9.0", "cu126").build()).hexdigest()
    library = hashlib.sha256(Wheel("cudalib", "126").build()).hexdigest()
    listed, report = tmp_path / "list.txt", tmp_path / "report.json"
    listed.write_text(
        f"torch==2.9.0 --hash=sha256:{digest}\ncudalib==126 --hash=sha256:{library}\n"
    )
    hashes = ("--require-hashes", "-r", str(listed), "--report", str(report))
    done = dry_run(patched, index, *catalog, "--variant", "torch=cuda12.6", *hashes)
    installs(done, *CUDA_126)
    items = {item["metadata"]["name"]: item for item in json.loads(report.read_text())["install"]}
    file = f"{places.files_url}/whl/cu126/torch-2.9.0%2Bcu126-py3-none-any.whl"
    assert items["torch"]["download_info"]["url"] == file
    assert items["torch"]["variant_label"] == "cuda12.6"


@pytest.mark.everywhere
def test_a_fault(fresh, index, catalog):
    """An error in the shim costs the variants, with one line; not a forced label silently."""
    (module,) = fresh.site_packages.glob("pep_variants_shim/_vendor/variants_catalog/listings.py")
    module.write_text("raise RuntimeError('broken')\n")
    done = dry_run(fresh, index, *catalog, "torch")
    installs(done, *PLAIN)
    assert done.err.startswith("pep-variants-shim: RuntimeError: broken ("), done
    assert "wheel variants are ignored in this run" in done.err
    assert done.err.count("\n") == 1, done
    done = dry_run(fresh, index, *catalog, "--variant", "torch=cuda12.8", "torch")
    assert (done.code, "RuntimeError: broken" in done.err) == (1, True), done


@pytest.mark.one
def test_the_default_catalogue(patched, environments, available, index, places):
    """It is in the shim and in a patched pip, also in a zip file."""
    mirror = f"https://download.pytorch.org={places.url}"
    options = ("install", "--dry-run", "--no-deps", "-i", index.url, "torch==2.9.0")
    default = ("--variant-catalog", "default", "--variant-catalog-mirror", mirror)
    env = {**CUDA_12, GPU: "9.0"}
    installs(patched.pip(*options, *default, env=env), CUDA_128[1])
    wheel = patched_pip(environments, PIPS[-1])
    plain = environments.plain(available.python, PIPS[-1])
    installs(plain.run(f"{wheel}/pip", *options, *default, env=env), CUDA_128[1])


# Builds that are an extra of the project: its own wheel, with other dependencies.


@pytest.fixture
def jax(serve, tmp_path):
    """jax with an extra for each CUDA version, and the options for its entry."""
    index = Index(metadata_hashes=True)
    plugins = {number: f"jax-cuda{number}-plugin" for number in ("12", "13")}
    requires = [f"{name}==0.10.2; extra == 'cuda{number}'" for number, name in plugins.items()]
    extras = ("cuda12", "cuda13")
    wheel = Wheel("jax", "0.10.2", requires=("jaxlib==0.10.2", *requires), extras=extras)
    index.add_wheel(wheel, metadata_file=True)
    for name in ("jaxlib", *plugins.values()):
        index.add_wheel(Wheel(name, "0.10.2"))
    index.add_wheel(Wheel("app", "1.0", requires=("jax[cuda12]",)))
    place = 'requires = ["{{name}}[cuda{}]=={{version}}"]'
    tables = [
        variant(f"cuda{number}", place.format(number), cuda=f"{number}.0", order=order)
        for order, number in enumerate(("13", "12"), 1)
    ]
    (tmp_path / "jax.toml").write_text(entry("jax", [*tables, variant("null", "")]))
    return serve(index), ("--variant-catalog", str(tmp_path / "jax.toml"))


@pytest.mark.everywhere
def test_an_extra(fresh, jax):
    index, options = jax
    options = ("-i", index.url, *options)
    plugin = "jax-cuda13-plugin-0.10.2"
    done = fresh.pip("install", *options, "jax", env=CUDA_13)
    assert (done.code, done.err) == (0, ""), done
    line = f"Successfully installed jax-0.10.2-cuda13 {plugin} jaxlib-0.10.2\n"
    assert line in done.out, done
    (folder,) = fresh.site_packages.glob("jax-0.10.2.dist-info")
    assert (folder / "METADATA").read_text().count("Requires-Dist") == 4
    assert fresh.pip("check").code == 0
    done = fresh.pip("install", *options, "-U", "jax", env=CUDA_13)
    assert "Successfully" not in done.out, done
    assert "to switch" not in done.out, done
    # The dependencies are those of the variant.
    fresh.pip("uninstall", "-y", "jax-cuda13-plugin")
    done = fresh.pip("install", *options, "jax", env=CUDA_13)
    assert f"Successfully installed {plugin}\n" in done.out, done
    done = fresh.pip("install", *options, "--variant-switch", "jax", env=CUDA_12)
    line = "Successfully installed jax-0.10.2-cuda12 jax-cuda12-plugin-0.10.2\n"
    assert line in done.out, done


@pytest.mark.one
def test_an_extra_in_other_commands(patched, jax, tmp_path):
    """No variant fits, one is forced, an extra is required beside it; hashes, locks."""
    index, options = jax
    jaxlib = "jaxlib-0.10.2"
    installs(dry_run(patched, index, *options, "jax", **NO_GPU), "jax-0.10.2", jaxlib)
    forced = ("--variant", "jax=cuda12", "jax")
    done = dry_run(patched, index, *options, *forced, **CUDA_13)
    installs(done, "jax-0.10.2-cuda12", "jax-cuda12-plugin-0.10.2", jaxlib)
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
    assert sorted(packages) == ["jax", "jax-cuda13-plugin", "jaxlib"]
    (wheel,) = packages["jax"]["wheels"]
    assert wheel["hashes"] == {"sha256": digest}
    done = patched.pip("install", "--dry-run", "-r", str(lock), env=NO_GPU)
    installs(done, "jax-0.10.2", "jax-cuda13-plugin-0.10.2", jaxlib)
