"""The catalogue of existing builds in pip: other indexes, other names, extras."""

from __future__ import annotations

import hashlib
import json

import pytest
import tomli

from support.catalog_places import Places, entry, served_places, variant
from support.environments import PIPS
from support.index import Index
from support.patched_pip import patched_pip
from support.projects import DRIVER, GPU
from support.wheels import NVIDIA, Release, Wheel, metadata

CUDA_12_8 = {DRIVER: "12.8"}
NO_GPU = {DRIVER: "11.0"}


def torch(version: str, local: str, **options: object) -> Wheel:
    requires = (f"cudalib=={local[2:]}",) if local.startswith("cu") else ()
    own = f"{version}+{local}" if local else version
    return Wheel("torch", own, tag="py3-none-any", requires=requires, **options)


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
    for name, other in (("torch", "torchvision"), ("torchvision", "torch")):
        tables = [
            variant(
                f"cuda{local[2:4]}.{local[4:]}",
                f'index = "{places.place(local)}"\nlocal = "{local}"',
                cuda=bound,
                order=number,
            )
            for number, (local, bound) in enumerate(
                [("cu130", "13.0"), ("cu128", "12.0"), ("cu126", "12.0")], 1
            )
        ]
        null = f'index = "{places.place("cpu")}"\nlocal = ["cpu", ""]'
        text = entry(name, [*tables, variant("null", null)], coherent=[other])
        (folder / f"{name}.toml").write_text(text)
    return folder


def versions(environment):
    found = {}
    for folder in environment.site_packages.glob("*.dist-info"):
        name, _, version = folder.name.removesuffix(".dist-info").partition("-")
        if name not in ("pip", "pep_variants_shim", "pip_variants"):
            found[name] = version
    return found


@pytest.mark.everywhere
def test_install(fresh, index, places, catalog):
    """The build for the machine; again there is nothing to do; a better machine is advice."""
    options = ("-i", index.url, "--variant-catalog", str(catalog))
    done = fresh.pip("install", *options, "torch", env=CUDA_12_8)
    assert (done.code, done.err) == (0, ""), done
    assert "Variant cuda12.8 for torch 2.9.0+cu128: CUDA driver 12.0 or newer" in done.out, done
    assert "Successfully installed cudalib-128 torch-2.9.0+cu128-cuda12.8\n" in done.out, done
    assert versions(fresh) == {"torch": "2.9.0+cu128", "cudalib": "128"}
    assert fresh.pip("check").code == 0
    for more in ((), ("--upgrade",)):
        done = fresh.pip("install", *options, *more, "torch", env=CUDA_12_8)
        assert (done.code, done.err) == (0, ""), done
        assert "Successfully" not in done.out, done
        assert "to switch" not in done.out, done
    done = fresh.pip("install", *options, "--upgrade", "torch", env={DRIVER: "13.0"})
    assert "Successfully" not in done.out, done
    assert "torch 2.9.0+cu128 is installed as variant cuda12.8; variant cuda13.0 fits" in done.out
    done = fresh.pip("install", *options, "--variant-switch", "torch", env={DRIVER: "13.0"})
    assert "torch-2.9.0+cu130-cuda13.0\n" in done.out, done
    assert versions(fresh) == {"torch": "2.9.0+cu130", "cudalib": "130"}


def dry_run(environment, *args, env):
    """Return what pip says it would install, and the command's result."""
    done = environment.pip("install", "--dry-run", *args, env=env)
    lines = [line for line in done.out.splitlines() if line.startswith("Would install")]
    return (lines[0].split()[2:] if lines else []), done


def both(local, label):
    return [f"torch-2.9.0+{local}-{label}", f"torchvision-0.9.0+{local}-{label}"]


def test_together(patched, index, catalog):
    """torch and torchvision of one build, whichever is named first, forced, or lacks one."""
    options = ("-i", index.url, "--variant-catalog", str(catalog))
    found, done = dry_run(patched, *options, "torchvision", env={DRIVER: "13.0"})
    assert found == ["cudalib-130", *both("cu130", "cuda13.0")], done
    found, done = dry_run(
        patched, *options, "--variant", "torch=cuda12.6", "torchvision", env={DRIVER: "13.0"}
    )
    assert found == ["cudalib-126", *both("cu126", "cuda12.6")], done
    found, done = dry_run(patched, *options, "torchvision", "torch", env=NO_GPU)
    assert found == both("cpu", "null"), done
    assert "driver" in done.out


@pytest.mark.one
def test_together_with_what_is_installed(fresh, index, places, catalog):
    """An installed build, of whatever installer, is what others agree with."""
    options = ("-i", index.url, "--variant-catalog", str(catalog))
    links = f"{places.place('cu126')}/torch/"
    fresh.pip("install", "-i", index.url, "--find-links", links, "torch==2.9.0+cu126")
    assert versions(fresh)["torch"] == "2.9.0+cu126"
    found, done = dry_run(fresh, *options, "torchvision", env=CUDA_12_8)
    assert found == ["torchvision-0.9.0+cu126-cuda12.6"], done


@pytest.mark.one
def test_what_counts(patched, index, places, catalog, tmp_path):
    """Without the option, or with an index of the user's choice, nothing of the catalogue."""
    options = ("-i", index.url, "--variant-catalog", str(catalog))
    plain = ["cudalib-1", "torch-2.9.0"]
    for more in (
        ("-i", index.url, "torch"),
        (*options, "--no-variants", "torch"),
        (*options, "--variant", "torch=", "torch"),
        ("-i", index.url, "--variant-catalog", "none", "torch"),
    ):
        found, done = dry_run(patched, *more, env=CUDA_12_8)
        assert found == plain, done
    assert places.requests == []
    # A place of the entry as an index of the user's own.
    found, done = dry_run(
        patched, *options, "--extra-index-url", places.place("cu126"), "torch", env=CUDA_12_8
    )
    assert found == ["cudalib-126", "torch-2.9.0+cu126"], done
    left_out = (
        f"The catalogue is left out for torch: {places.place('cu126')} is one of your indexes"
    )
    assert done.out.count(left_out) == 1
    _, done = dry_run(patched, "--no-index", *options, "torch", env=CUDA_12_8)
    assert "No matching distribution found for torch" in done.err
    # A version, a local version, and one with an own local version.
    for wanted, expected in (
        ("torch==2.8.0", ["cudalib-128", "torch-2.8.0+cu128-cuda12.8"]),
        ("torch==2.9.0+cu126", ["cudalib-126", "torch-2.9.0+cu126-cuda12.6"]),
    ):
        assert dry_run(patched, *options, wanted, env=CUDA_12_8)[0] == expected
    # A project's file does not bring a catalogue.
    (tmp_path / "variants.toml").write_text(f'catalog = "{catalog}"\n')
    done = patched.pip(
        "install", "--dry-run", "-i", index.url, "torch", env=CUDA_12_8, cwd=tmp_path
    )
    assert "Would install cudalib-1 torch-2.9.0\n" in done.out, done


@pytest.mark.one
def test_real_variants_win(patched, index, catalog):
    """Versions with variant wheels of their own are not the catalogue's."""
    tree = metadata(
        {"null": {}, "own": {"nvidia": {"cuda_version_lower_bound": ["12.0"]}}},
        namespaces=["nvidia"], providers={"nvidia": NVIDIA},
    )  # fmt: skip
    index.add_release(Release("torch", "2.9.0", tree))
    options = ("-i", index.url, "--variant-catalog", str(catalog))
    assert dry_run(patched, *options, "torch", env=CUDA_12_8)[0] == ["torch-2.9.0-own"]
    found = dry_run(patched, *options, "torch==2.8.0", env=CUDA_12_8)[0]
    assert found == ["cudalib-128", "torch-2.8.0+cu128-cuda12.8"]


@pytest.mark.everywhere
def test_a_place_fails(patched, index, places, catalog):
    """C7: one line for a host, for all projects; the next best is taken."""
    options = ("-i", index.url, "--variant-catalog", str(catalog), "torch")
    page = "/whl/cu128/torch/"
    for fault, reason in (
        ((403, "text/plain", b"no"), "403 Client Error"),
        ((404, "text/plain", b"no"), "404 Client Error"),
        ((200, "text/html", b"<form>Log in</form>"), "lists no wheels"),
        ((200, "application/pdf", b"%PDF"), "it is application/pdf, no page of links"),
    ):
        places.faults[page] = fault
        found, done = dry_run(patched, *options, env=CUDA_12_8)
        assert found == ["cudalib-126", "torch-2.9.0+cu126-cuda12.6"], done
        line = f"WARNING: torch: variant cuda12.8 from {places.url} cannot be had: {reason}"
        assert done.err.startswith(line), done
        assert done.err.endswith(f" (for a mirror: --variant-catalog-mirror {places.url}=URL)\n")
        assert done.err.count("\n") == 1, done


@pytest.mark.everywhere
def test_a_host_that_cannot_be_reached(patched, index, places, catalog):
    """C7: one line for all projects, with the cause and what to type."""
    options = ("-i", index.url, "--variant-catalog", str(catalog))
    mirror = f"{places.url}=http://127.0.0.1:9"
    found, done = dry_run(
        patched, *options, "--variant-catalog-mirror", mirror, "torchvision", env=CUDA_12_8
    )
    assert found == ["cudalib-1", "torch-2.9.0", "torchvision-0.9.0"], done
    labels = "variants cuda13.0, cuda12.8, cuda12.6 and 1 more"
    assert done.err == (
        f"WARNING: torchvision, torch: {labels} from http://127.0.0.1:9 cannot be had: "
        "Connection refused (for a mirror: --variant-catalog-mirror http://127.0.0.1:9=URL)\n"
    ), done


@pytest.mark.one
def test_mirrors_files_and_urls(patched, index, places, catalog, serve, tmp_path):
    """A mirror of a place; a catalogue of one file, and from a server, also one that is down."""
    text = (catalog / "torch.toml").read_text()
    moved = tmp_path / "torch.toml"
    moved.write_text(text.replace(f"{places.url}/whl", "http://127.0.0.1:9/pytorch"))
    expected = ["cudalib-128", "torch-2.9.0+cu128-cuda12.8"]
    mirror = f"http://127.0.0.1:9/pytorch={places.url}/whl"
    options = ("-i", index.url, "--variant-catalog-mirror", mirror, "torch")
    found, done = dry_run(patched, "--variant-catalog", str(moved), *options, env=CUDA_12_8)
    assert found == expected, done
    places.files["/catalog.toml"] = text.encode()
    url = f"{places.url}/catalog.toml"
    found, done = dry_run(
        patched, "-i", index.url, "--variant-catalog", url, "torch", env=CUDA_12_8
    )
    assert found == expected, done
    found, done = dry_run(
        patched, "-i", index.url, "--variant-catalog", f"{url}2", "torch", env=CUDA_12_8
    )
    assert found == ["cudalib-1", "torch-2.9.0"], done
    assert f"WARNING: The catalogue {url}2 is left out: 403 Client Error" in done.err
    found, done = dry_run(
        patched, "-i", index.url, "--variant-catalog", str(tmp_path / "no.toml"), "torch",
        env=CUDA_12_8,
    )  # fmt: skip
    assert found == []
    assert done.err.startswith("ERROR: ")
    assert "no.toml" in done.err


@pytest.mark.everywhere
def test_hashes_reports_downloads_and_locks(patched, index, places, catalog, tmp_path):
    """All name the publisher's file, with its URL and hash."""
    options = ("-i", index.url, "--variant-catalog", str(catalog))
    wheel = torch("2.9.0", "cu126")
    digest = hashlib.sha256(wheel.build()).hexdigest()
    library = hashlib.sha256(Wheel("cudalib", "126").build()).hexdigest()
    (tmp_path / "requirements.txt").write_text(
        f"torch==2.9.0 --hash=sha256:{digest}\ncudalib==126 --hash=sha256:{library}\n"
    )
    report = tmp_path / "report.json"
    found, done = dry_run(
        patched, *options, "--require-hashes", "-r", str(tmp_path / "requirements.txt"),
        "--variant", "torch=cuda12.6", "--report", str(report), env=CUDA_12_8,
    )  # fmt: skip
    assert found == ["cudalib-126", "torch-2.9.0+cu126-cuda12.6"], done
    items = {item["metadata"]["name"]: item for item in json.loads(report.read_text())["install"]}
    file = f"{places.files_url}/whl/cu126/torch-2.9.0%2Bcu126-py3-none-any.whl"
    assert items["torch"]["download_info"]["url"] == file
    assert items["torch"]["variant_label"] == "cuda12.6"
    done = patched.pip("download", *options, "-d", str(tmp_path / "files"), "torch", env=CUDA_12_8)
    names = {path.name for path in (tmp_path / "files").iterdir()}
    assert "torch-2.9.0+cu128-py3-none-any.whl" in names, done
    lock = tmp_path / "pylock.toml"
    done = patched.pip("lock", *options, "-o", str(lock), "torch", env=CUDA_12_8)
    if "unknown command" in done.err:
        return
    packages = {item["name"]: item for item in tomli.loads(lock.read_text())["packages"]}
    assert packages["torch"]["version"] == "2.9.0+cu128"
    assert packages["torch"]["wheels"][0]["url"] == file.replace("cu126", "cu128")
    digest = hashlib.sha256(torch("2.9.0", "cu128").build()).hexdigest()
    assert packages["torch"]["wheels"][0]["hashes"] == {"sha256": digest}
    assert "variants" not in packages["torch"]


@pytest.mark.everywhere
def test_a_fault(fresh, index, catalog):
    """An error in the shim costs the variants, with one line; not a forced label silently."""
    (module,) = fresh.site_packages.glob("pep_variants_shim/_vendor/variants_catalog/listings.py")
    module.write_text("raise RuntimeError('broken')\n")
    options = ("-i", index.url, "--variant-catalog", str(catalog))
    found, done = dry_run(fresh, *options, "torch", env=CUDA_12_8)
    assert found == ["cudalib-1", "torch-2.9.0"], done
    assert done.err.startswith("pep-variants-shim: RuntimeError: broken ("), done
    assert "wheel variants are ignored in this run" in done.err
    assert done.err.count("\n") == 1, done
    done = fresh.pip(
        "install", "--dry-run", *options, "--variant", "torch=cuda12.8", "torch", env=CUDA_12_8
    )
    assert done.code == 1, done
    assert "RuntimeError: broken" in done.err


@pytest.mark.one
def test_a_links_page_and_builds_for_releases_of_another_project(
    patched, index, places, catalog, tmp_path
):
    """A find-links page; the local version says which torch a build is for."""
    for release in ("2.8", "2.9"):
        local = f"cu.12.8.torch.{release}"
        places.add("links", Wheel("flash", f"1.0+{local}", requires=("torch",)))
    where = f'links = "{places.place("links")}/flash/"\nlocal = "cu.12.8.torch.{{torch}}"'
    text = entry("flash", [variant("cuda12.8_torch{torch}", where, cuda="12.0")])
    properties = "properties = ["
    text = text.replace(properties, f"{properties}'abi_dependency :: torch :: {{torch}}', ")
    (catalog / "flash.toml").write_text(text)
    index.add("flash", "flash-0.9.tar.gz", b"")
    options = ("-i", index.url, "--variant-catalog", str(catalog))
    for version, release in (("2.8.0", "2.8"), ("2.9.0", "2.9")):
        found, done = dry_run(patched, *options, "flash", f"torch=={version}", env=CUDA_12_8)
        wanted = f"flash-1.0+cu.12.8.torch.{release}-cuda12.8_torch{release}"
        assert found == ["cudalib-128", wanted, f"torch-{version}+cu128-cuda12.8"], done


@pytest.mark.one
def test_the_default_catalogue(fresh, environments, index, places):
    """It is in the shim and in a patched pip, also in a zip file."""
    mirror = f"https://download.pytorch.org={places.url}"
    options = ("install", "--dry-run", "--no-deps", "-i", index.url, "torch==2.9.0")
    default = ("--variant-catalog", "default", "--variant-catalog-mirror", mirror)
    env = {**CUDA_12_8, GPU: "9.0"}
    done = fresh.pip(*options, *default, env=env)
    assert "Would install torch-2.9.0+cu128-cuda12.8\n" in done.out, done
    wheel = patched_pip(environments, PIPS[-1])
    plain = environments.plain("3.12", PIPS[-1])
    done = plain.run(f"{wheel}/pip", *options, *default, env=env)
    assert "Would install torch-2.9.0+cu128-cuda12.8\n" in done.out, done
