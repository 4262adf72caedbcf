"""`uv-variants` with an index that lies, beside one that is trusted."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from support.index import Index
from support.projects import CUDA_12_8, app_index
from support.uvs import Machine
from support.wheels import Wheel

PYTHON = sys.executable
Serve = Callable[[Index], Index]


class LyingIndex(Index):
    """An index that claims hashes of other files for its own, by filename."""

    claims: dict[str, str]

    def _json(self, project: str) -> bytes:
        tree: dict[str, Any] = json.loads(super()._json(project))
        for entry in tree["files"]:
            entry["hashes"] = {"sha256": self.claims.get(entry["filename"], "0" * 64)}
        return json.dumps(tree).encode()


@pytest.mark.parametrize("ranges", [True, False])
def test_the_hash_of_another_index_s_wheel(machine: Machine, serve: Serve, ranges: bool) -> None:
    """METADATA under a trusted hash, read from an index that only claims that hash."""
    trusted = serve(app_index(ranges=ranges))
    hostile = LyingIndex(ranges=ranges)
    wheels = [name for name in trusted.files["app"] if name.endswith(".whl")]
    hostile.claims = {}
    metadata = trusted.files["app"]["app-1.0-variants.json"]
    hostile.add("bait", "bait-1.0-variants.json", metadata)
    for name in wheels:
        # Inside it is called as the trusted one, or uv would refuse its METADATA by the name.
        requires = ("evil; 'nvidia' in variant_namespaces",)
        label = name.removesuffix(".whl").rpartition("-")[2]
        data = Wheel("app", "1.0", label, requires=requires).build()
        filename = name.replace("app", "bait", 1)
        hostile.add("bait", filename, data)
        hostile.claims[filename] = hashlib.sha256(trusted.files["app"][name]).hexdigest()
    hostile.claims["bait-1.0-variants.json"] = hashlib.sha256(metadata).hexdigest()
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
