"""Variants that are projects of other names, or extras, in pip."""

from __future__ import annotations

import hashlib
import json

import pytest
import tomli

from support.catalog_places import entry, variant
from support.index import Index
from support.projects import DRIVER
from support.wheels import Wheel

CUDA_13 = {DRIVER: "13.0"}
CUDA_12 = {DRIVER: "12.8"}
NO_GPU = {DRIVER: "11.0"}


@pytest.fixture
def index(serve):
    """cupy under one name for each CUDA version; jax with an extra for each."""
    index = Index(metadata_hashes=True)
    for version in ("14.0.0", "14.2.0"):
        for number in ("12", "13"):
            index.add_wheel(Wheel(f"cupy-cuda{number}x", version, requires=("fastrlock",)))
        index.add_wheel(Wheel("cupy", version))
    index.add_wheel(Wheel("cupy-cuda12x", "14.3.0"))
    index.add_wheel(Wheel("fastrlock", "1.0"))
    jax = Wheel(
        "jax",
        "0.10.2",
        requires=(
            "jaxlib==0.10.2",
            "jax-cuda12-plugin==0.10.2; extra == 'cuda12'",
            "jax-cuda13-plugin==0.10.2; extra == 'cuda13'",
        ),
        extras=("cuda12", "cuda13"),
    )
    index.add_wheel(jax, metadata_file=True)
    for name in ("jaxlib", "jax-cuda12-plugin", "jax-cuda13-plugin"):
        index.add_wheel(Wheel(name, "0.10.2"))
    index.add_wheel(Wheel("app", "1.0", requires=("jax[cuda12]",), extras=("x",)))
    return serve(index)


@pytest.fixture
def catalog(tmp_path):
    """Entries of cupy and jax."""
    folder = tmp_path / "catalog"
    folder.mkdir()
    for name, place in (
        ("cupy", 'requires = ["cupy-cuda{}x=={{version}}"]'),
        ("jax", 'requires = ["{{name}}[cuda{}]=={{version}}"]'),
    ):
        tables = [
            variant(f"cuda{number}", place.format(number), cuda=f"{number}.0", order=order)
            for order, number in enumerate(("13", "12"), 1)
        ]
        (folder / f"{name}.toml").write_text(entry(name, [*tables, variant("null", "")]))
    return folder


def installed(environment):
    done = environment.pip("list", "--format", "json")
    skipped = ("pip", "pep-variants-shim", "pep_variants_shim", "pip-variants", "pip_variants")
    return {
        item["name"]: f"{item['version']}-{item.get('variant_label', '')}".rstrip("-")
        for item in json.loads(done.out)
        if item["name"] not in skipped
    }


@pytest.mark.everywhere
def test_another_name(fresh, index, catalog):
    """The publisher's wheel, under the name of the project."""
    options = ("-i", index.url, "--variant-catalog", str(catalog))
    done = fresh.pip("install", *options, "cupy==14.2.0", env=CUDA_13)
    assert (done.code, done.err) == (0, ""), done
    line = "Variant cuda13 for cupy 14.2.0 (published as cupy-cuda13x): CUDA driver 13.0 or newer"
    assert line in done.out, done
    assert "Successfully installed cupy-14.2.0-cuda13 fastrlock-1.0\n" in done.out, done
    assert installed(fresh) == {"cupy": "14.2.0-cuda13", "fastrlock": "1.0"}
    assert fresh.pip("check").code == 0
    done = fresh.pip("install", *options, "--upgrade", "cupy==14.2.0", env=CUDA_13)
    assert (done.code, done.err) == (0, ""), done
    assert "Successfully" not in done.out
    assert "to switch" not in done.out
    # A driver that is older, and none.
    done = fresh.pip("install", *options, "--variant-switch", "cupy", env=CUDA_12)
    assert "Successfully installed cupy-14.2.0-cuda12\n" in done.out, done
    done = fresh.pip("install", *options, "--variant-switch", "cupy", env=NO_GPU)
    assert "Successfully installed cupy-14.2.0\n" in done.out, done
    # C15: a version that only the other name has is no version of cupy.
    done = fresh.pip("install", "--dry-run", *options, "-U", "cupy", env=CUDA_12)
    assert "Would install" not in done.out, done


@pytest.mark.everywhere
def test_an_extra(fresh, index, catalog):
    """The project's own wheel, with the dependencies of an extra."""
    options = ("-i", index.url, "--variant-catalog", str(catalog))
    plugin = "jax-cuda13-plugin-0.10.2"
    done = fresh.pip("install", *options, "jax", env=CUDA_13)
    assert (done.code, done.err) == (0, ""), done
    line = f"Successfully installed jax-0.10.2-cuda13 {plugin} jaxlib-0.10.2\n"
    assert line in done.out, done
    (folder,) = fresh.site_packages.glob("jax-0.10.2.dist-info")
    assert (folder / "METADATA").read_text().count("Requires-Dist") == 4
    assert fresh.pip("check").code == 0
    for more in ((), ("-U",)):
        done = fresh.pip("install", *options, *more, "jax", env=CUDA_13)
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
def test_an_extra_in_other_commands(patched, index, catalog, tmp_path):
    """No variant fits, one is forced, an extra is required beside it; hashes, locks."""
    options = ("-i", index.url, "--variant-catalog", str(catalog))
    install = ("install", "--dry-run", *options)
    assert (
        "Would install jax-0.10.2 jaxlib-0.10.2\n" in patched.pip(*install, "jax", env=NO_GPU).out
    )
    done = patched.pip(*install, "--variant", "jax=cuda12", "jax", env=CUDA_13)
    assert "Would install jax-0.10.2-cuda12 jax-cuda12-plugin-0.10.2 jaxlib" in done.out, done
    done = patched.pip(*install, "--variant", "jax=cuda12", "jax", env=NO_GPU)
    assert "variant 'cuda12' of jax 0.10.2" in done.err, done
    done = patched.pip(*install, "app", env=CUDA_13)
    assert "jax-0.10.2-cuda13 jax-cuda12-plugin-0.10.2 jax-cuda13-plugin-0.10.2" in done.out, done
    hashes = {
        name: hashlib.sha256(index.files[name][f"{name.replace('-', '_')}-0.10.2-py3-none-any.whl"])
        for name in ("jax", "jaxlib")
    }
    lines = [f"{name}==0.10.2 --hash=sha256:{item.hexdigest()}\n" for name, item in hashes.items()]
    (tmp_path / "requirements.txt").write_text("".join(lines))
    listed = ("--require-hashes", "-r", str(tmp_path / "requirements.txt"))
    done = patched.pip(*install, *listed, env=CUDA_13)
    assert "Would install jax-0.10.2 jaxlib-0.10.2\n" in done.out, done
    assert "Hashes of jax are given: its builds under another name or with other" in done.out, done
    lock = tmp_path / "pylock.toml"
    done = patched.pip("lock", *options, "-o", str(lock), "jax", "cupy==14.2.0", env=CUDA_13)
    assert done.code == 0, done
    packages = {item["name"]: item for item in tomli.loads(lock.read_text())["packages"]}
    assert sorted(packages) == ["cupy-cuda13x", "fastrlock", "jax", "jax-cuda13-plugin", "jaxlib"]
    (wheel,) = packages["jax"]["wheels"]
    assert wheel["url"].endswith("/jax-0.10.2-py3-none-any.whl")
    assert wheel["hashes"] == {"sha256": hashes["jax"].hexdigest()}
    done = patched.pip("install", "--dry-run", "-r", str(lock), env=NO_GPU)
    assert "cupy-cuda13x-14.2.0 fastrlock-1.0 jax-0.10.2 jax-cuda13-plugin" in done.out, done
