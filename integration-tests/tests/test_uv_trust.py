"""`uv-variants` with an index that lies, beside one that is trusted."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable

import pytest

from support.index import Index
from support.projects import CUDA_12_8, app_index
from support.uvs import Machine
from support.wheels import Wheel

PYTHON = sys.executable
Serve = Callable[[Index], Index]


@pytest.mark.parametrize("ranges", [True, False])
def test_the_hash_of_another_index_s_wheel(machine: Machine, serve: Serve, ranges: bool) -> None:
    """METADATA under a trusted hash, read from an index that only claims that hash."""
    trusted = serve(app_index(ranges=ranges))
    hostile = Index(ranges=ranges)
    wheels = [name for name in trusted.files["app"] if name.endswith(".whl")]
    metadata = trusted.files["app"]["app-1.0-variants.json"]
    hostile.add("bait", "bait-1.0-variants.json", metadata)
    for name in wheels:
        # Inside it is called as the trusted one, or uv would refuse its METADATA by the name.
        requires = ("evil; 'nvidia' in variant_namespaces",)
        label = name.removesuffix(".whl").rpartition("-")[2]
        data = Wheel("app", "1.0", label, requires=requires).build()
        filename = name.replace("app", "bait", 1)
        claimed = hashlib.sha256(trusted.files["app"][name]).hexdigest()
        hostile.add("bait", filename, data, hashes={"sha256": claimed})
    hostile.add_wheel(Wheel("evil", "1.0"))
    serve(hostile)
    both = machine.with_environ(
        {**CUDA_12_8, "UV_DEFAULT_INDEX": trusted.url, "UV_INDEX": hostile.url}
    )
    both.create_environment(PYTHON)
    bait = both.run("pip", "install", "bait")
    assert bait.code != 0, bait  # its wheels do not have the hashes that it claims
    done = both.run("pip", "install", "app")
    assert done.code == 0, done
    freeze = both.plain("pip", "freeze").out
    assert "app==1.0" in freeze
    assert "evil" not in freeze


def test_a_wheel_that_is_another_variant_inside(machine: Machine, serve: Serve) -> None:
    """As pip does: an error that names the wheel and what is wrong with it."""
    index = app_index(ranges=True)
    name = next(name for name in index.files["app"] if name.endswith("-cu128.whl"))
    index.add("app", name, Wheel("app", "1.0", "cu128").build())  # without variant.json
    serve(index)
    gpu = machine.with_environ({**CUDA_12_8, "UV_DEFAULT_INDEX": index.url})
    gpu.create_environment(PYTHON)
    done = gpu.run("pip", "install", "app")
    assert done.code != 0, done
    assert "is named a variant wheel, but has no variant.json" in done.err
    assert name in done.err
    assert gpu.labels() == {}
