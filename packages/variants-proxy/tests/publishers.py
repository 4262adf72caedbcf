"""A publisher's indexes by accelerator, laid out as PyTorch's, and catalogue entries for them."""

import hashlib
from urllib.parse import quote

from upstream_server import metadata_of, wheel

LINUX, WINDOWS, ARM = "manylinux_2_28_x86_64", "win_amd64", "manylinux_2_28_aarch64"
MAC = "macosx_11_0_arm64"

TORCH = """
catalog-version = "1"
[project]
name = "torch"
documentation = "https://example.org/torch"
coherent = ["torchvision"]
default-priorities.namespace = ["nvidia"]
[[variant]]
label = "cuda12.8"
index = "URL/whl/cu128"
local = "cu128"
properties = ["nvidia :: cuda_version_lower_bound :: 12.8"]
[[variant]]
label = "cuda12.6"
index = "URL/whl/cu126"
local = "cu126"
properties = ["nvidia :: cuda_version_lower_bound :: 12.6"]
[[variant]]
label = "cuda13.0"
index = "URL/whl/cu130"
local = "cu130"
properties = ["nvidia :: cuda_version_lower_bound :: 13.0"]
[[variant]]
label = "null"
index = "URL/whl/cpu"
local = ["cpu", ""]
"""

OTHER_NAME = """
catalog-version = "1"
[project]
name = "cupy"
documentation = "https://example.org/cupy"
default-priorities.namespace = ["nvidia"]
[[variant]]
label = "cuda12"
requires = ["cupy-cuda12x=={version}"]
properties = ["nvidia :: cuda_version_lower_bound :: 12.6"]
[[variant]]
label = "cuda13"
requires = ["cupy-cuda13x=={version}"]
properties = ["nvidia :: cuda_version_lower_bound :: 13.0"]
"""

EXTRA = """
catalog-version = "1"
[project]
name = "jax"
documentation = "https://example.org/jax"
default-priorities.namespace = ["nvidia"]
[[variant]]
label = "cuda12"
requires = ["{name}[cuda12]=={version}"]
properties = ["nvidia :: cuda_version_lower_bound :: 12.6"]
"""

INDEX = """
catalog-version = "1"
[project]
name = "app"
documentation = "https://example.org/app"
variants-index = "URL/simple/"
"""


class Publisher:
    """Indexes of one publisher on a server, with the files on another one.

    Attributes:
        server: that has the pages.
        files: the server of the files.
    """

    def __init__(self, server, files=None):
        self.server = server
        self.files = files or server
        self.rows = {}

    def add(
        self, backend, version, platforms, *requires, project="torch", hashed=True, python="cp312"
    ):
        """Publish the wheels of a version; return their contents by name."""
        made = {}
        for platform in platforms:
            abi = "none" if platform == MAC else python
            name = f"{project}-{version}-{python}-{abi}-{platform}.whl"
            data = made[name] = wheel(name, *requires)
            path = f"/whl/{backend}/{quote(name)}"
            self.files.faults[path] = (200, {}, data)
            self.files.faults[f"{path}.metadata"] = (200, {}, metadata_of(data))
            host = "" if self.files is self.server else self.files.url
            fragment = f"#sha256={hashlib.sha256(data).hexdigest()}" if hashed else ""
            attribute = (
                f'data-core-metadata="sha256={hashlib.sha256(metadata_of(data)).hexdigest()}"'
            )
            row = f'<a href="{host}{path}{fragment}" {attribute}>{name}</a><br/>\n'
            self.rows.setdefault((backend, project), []).append(row)
            rows = "".join(self.rows[backend, project])
            page = (
                f"<!DOCTYPE html><html><body>\n<h1>Links for {project}</h1>\n{rows}</body></html>"
            )
            self.server.faults[f"/whl/{backend}/{project}/"] = (
                200, {"Content-Type": "text/html"}, page.encode(),
            )  # fmt: skip
        return made

    def entry(self, text=TORCH):
        """Return the text of an entry with the URL of the server."""
        return text.replace("URL", self.server.url)
