"""Small inputs to start from, of them many from the other corpora, and the words of each format."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import tomli_w

from conformance.case import read_cases
from conformance.place import MACHINES
from hostile.content import evaluate
from support import gpu_libraries

# ruff: noqa: UP031 - JSON, TOML and URLs are full of braces

ENTRIES = Path(__file__).parents[2] / "packages/variants-catalog/src/variants_catalog/projects"
FOUND = Path(__file__).parent / "found"
"""Inputs that were defects once: ``found/TARGET/NAME``."""

_DOCUMENT = """\
{"$schema": "https://variants-schema.wheelnext.dev/v0.2.0.json",
 "default-priorities": {"namespace": ["nvidia", "x86_64"], "feature": {"nvidia": ["sm_arch"]}},
 "providers": {
  "nvidia": {"requires": ["nvidia-variant-provider>=0.0.1; python_version >= '3.9'"],
             "plugin-api": "nvidia_variant_provider.plugin:NvidiaVariantPlugin", "optional": false},
  "x86_64": {"static-properties": {"level": ["v3", "v2"], "bmi2": ["on"]},
             "feature-order": ["level", "bmi2"]}},
 "variants": {
  "null": {},
  "cu128": {"nvidia": {"cuda_version_lower_bound": ["12.0"], "sm_arch": ["90_real"]}},
  "x8664v3": {"x86_64": {"level": ["v3"]}, "abi_dependency": {"torch": ["2.9"]}}}}
"""
_PYPROJECT = """\
[project]
name = "name"
version = "1.0"
dependencies = ["other>=1; 'nvidia' in variant_namespaces"]
[project.optional-dependencies]
gpu = ["cudalib; extra == 'gpu'"]
[variant.default-priorities]
namespace = ["nvidia"]
[variant.providers.nvidia]
requires = ["nvidia-variant-provider"]
build-requires = ["x"]
plugin-api = "a.b:C"
"""
_METADATA = """\
Metadata-Version: 2.4
Name: name
Version: 1.0
Requires-Python: >=3.10
Requires-Dist: cudalib ; 'nvidia :: sm_arch :: 90_real' in variant_properties
Requires-Dist: other[extra] >=1,<2 ; (platform_system == 'Linux' or variant_label == 'xpu')
Provides-Extra: gpu

A description.
"""
_PAGE = """\
<!DOCTYPE html><html><head><meta name="pypi:repository-version" content="1.3">
<base href="https://files.example/a/"></head><body>
<a href="name-1.0-py3-none-any-cu128.whl#sha256=%s" data-requires-python="&gt;=3.10"
 data-core-metadata="sha256=%s" data-yanked="why">name-1.0-py3-none-any-cu128.whl</a>
<a href='../../name-1.0.tar.gz'>name</a><!-- x --></body></html>
""" % ("0" * 64, "1" * 64)
_JSON_PAGE = """\
{"meta": {"api-version": "1.4", "tracks": ["https://a.example/"]}, "name": "name",
 "versions": ["1.0"], "project-status": {"status": "archived", "reason": "x"},
 "alternate-locations": ["https://b.example/"],
 "files": [{"filename": "name-1.0-py3-none-any.whl", "url": "name-1.0-py3-none-any.whl",
  "hashes": {"sha256": "%s"}, "requires-python": ">=3.10", "size": 10, "yanked": "why",
  "upload-time": "2026-01-01T00:00:00Z", "core-metadata": {"sha256": "%s"},
  "provenance": "https://index.example/p"}]}
""" % ("0" * 64, "1" * 64)
_SETTINGS = """\
no-variants = false
variant = ["torch=cu128"]
prefer = ["nvidia :: sm_arch"]
exclude = ["x86_64 :: level :: v4"]
platform = "platform.toml"
enable = ["blas"]
allow-provider = ["acme-provider>=1 --hash=sha256:%s"]
namespace_priorities = ["nvidia"]
[feature_priorities]
nvidia = ["sm_arch"]
[property_priorities.nvidia]
sm_arch = ["90_real"]
""" % ("0" * 64)
_UV_LOCK = """\
version = 1
[[package]]
name = "name"
version = "1.0"
source = { registry = "http://uv-variants.invalid/p/here/simple/" }
wheels = [{ url = "http://uv-variants.invalid/p/here/files/pypi/name/cu128/n-1-py3-none-any.whl" }]
"""
_MATRIX = """\
extends = "pytorch"
label = ["cuda"]
[project]
[variant.default-priorities]
namespace = ["nvidia"]
[axes.cuda.null]
host = "platform_machine == 'aarch64'"
[axes.cuda."12.8"]
label = "cu128"
properties = ["nvidia :: cuda_version_lower_bound :: 12.8"]
environment = {TORCH_CUDA_ARCH_LIST = "8.0;9.0", CFLAGS = ["-O2"]}
requires = {python = ">=3"}
flags = {c = ["-g"]}
[axes.python."3.12"]
[[exclude]]
cuda = ">=13"
[[override]]
where = {cuda = ["12.8"]}
label = "cu128_x"
[build]
test = "python -c 1"
"""
_REQUIREMENTS = """\
# comment
--index-url https://user:pw@index.example/simple/
name[extra]==1.0 ; python_version >= "3.10" --hash=sha256:%s
other @ https://index.example/other-1.0-py3-none-any.whl \\
  --hash=sha256:%s
--no-index
""" % ("0" * 64, "1" * 64)
_ANSWER = """\
{"features": [{"name": "level", "values": ["v3", "v2"], "multi_value": false}],
 "namespace": "acme", "fixed": true}
"""
_RECORD = """\
name/__init__.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0
name-1.0.dist-info/METADATA,sha256=x,10
name-1.0.dist-info/RECORD,,
"""
_JSON_WORDS = ("{", "}", "[", "]", '"', ":", ",", "null", "true", "1e999", "NaN", "\\ud800")

TEXTS: dict[str, tuple[str, ...]] = {
    "document": (_DOCUMENT,),
    "pyproject": (_PYPROJECT,),
    "core_metadata": (_METADATA,),
    "settings": (_SETTINGS,),
    "plugin_answer": (_ANSWER, '{"error": "RuntimeError: x"}'),
    "allowed_requirements": (
        "acme-provider[x]>=1 --hash=sha256:" + "0" * 64 + "\0acme-provider; python_version > '3'",
        "p @ https://a.example/p-1.0-py3-none-any.whl\0p==1.*\0q",
    ),
    "record": (_RECORD,),
    "html_page": (_PAGE,),
    "json_page": (_JSON_PAGE,),
    "content_type": ("text/html; charset=utf-8", "application/vnd.pypi.simple.v1+json"),
    "content_range": ("bytes 0-99/1000", "bytes */1000"),
    "matrix": (_MATRIX.partition("\n")[2].replace("[project]\n", ""), _MATRIX),
    "uv_lock": (_UV_LOCK,),
    "requirements_file": (_REQUIREMENTS,),
    "platform_key": ("h100-zen4", "2~eNqrVkpTslLKMDQw0K1KzTNR0lEqAfJzMvNKK3QrLMzizUyUagG20go2"),
}
"""Inputs by target, beside those of `_known`."""

WORDS: dict[str, tuple[str, ...]] = {
    "document": (
        *_JSON_WORDS, "$schema", "default-priorities", "namespace", "feature", "property",
        "providers", "requires", "plugin-api", "enable-if", "optional", "plugin-use",
        "install-time", "static-properties", "feature-order", "builtin", "variants", "nvidia",
        "abi_dependency", "00000000",
    ),
    "marker": (
        "variant_label", "variant_namespaces", "variant_features", "variant_properties", " and ",
        " or ", " not in ", " in ", "==", "!=", "~=", ">=", "(", ")", "'", '"', "extra", "::",
    ),
    "html_page": (
        "<a ", "href=", "<base ", "<meta ", "<!--", "-->", "<![CDATA[", "]]>", "&#", "&amp;",
        "data-yanked", "data-core-metadata", "file:///", "//", "#sha256=", "<script>", "</",
    ),
    "json_page": (*_JSON_WORDS, "meta", "files", "url", "hashes", "file:///", "yanked", "size"),
    "library": ("\x7fELF", "MZ", "CCOB", "__CLANG_OFFLOAD_BUNDLE__", "amdgcn-amd-amdhsa--gfx"),
    "wheel": ("PK\x01\x02", "PK\x03\x04", "PK\x05\x06", "PK\x06\x06", "PK\x06\x07"),
}  # fmt: skip
"""Words of the format by target, which mutations use; targets without share `ALIKE`'s."""

ALIKE = {
    "merging": "document",
    "plugin_answer": "json_page",
    "requirement": "marker",
    "core_metadata": "marker",
    "allowed_requirements": "marker",
    "wheel_rewriting": "wheel",
}


def seeds(target: str) -> list[bytes]:
    """Return the inputs to start *target* from: those above, and those that were defects once."""
    found = [path.read_bytes() for path in sorted((FOUND / target).glob("*"))]
    return (
        [text.encode() for text in TEXTS.get(target, ())] + list(_known().get(target, ())) + found
    )


def words(target: str) -> tuple[str, ...]:
    """Return the words of the format that *target* reads."""
    return WORDS.get(ALIKE.get(target, target), ())


@functools.cache
def _known() -> Mapping[str, Sequence[bytes]]:
    """Return inputs by target from the cases of conformance, those that were generated left out."""
    cases = [case for case in read_cases().values() if not case.is_one_of_many]
    read = [case.documents for case in cases if case.form == "document"]
    requirements = [line.encode() for case in cases for line in case.tree.get("requires", ())]
    wheel = {"name": "name", "version": "1.0", "metadata": _METADATA, "variant-json": _DOCUMENT}
    wheels = [evaluate({"wheel": wheel})]
    locks = [tomli_w.dumps(case.tree["lock"]) for case in cases if case.form == "lock"]
    return {
        "document": [documents[0] for documents in read],
        "merging": [b"\0".join(documents[:2]) for documents in read if len(documents) > 1],
        "marker": [line.partition(b";")[2] for line in requirements],
        "requirement": requirements,
        "filename": [case.tree["filename"].encode() for case in cases if case.form == "filename"],
        "catalog": [path.read_bytes() for path in sorted(ENTRIES.glob("*.toml"))],
        "platform": [path.read_bytes() for path in sorted(MACHINES.glob("*.toml"), reverse=True)],
        "lock_file": [
            re.sub(r"{{[a-z]+:(.+?)}}", r"https://h/\1", text).encode() for text in locks
        ],
        "wheel": wheels,
        "wheel_rewriting": wheels,
        "library": list(_libraries()),
    }


def _libraries() -> Iterator[bytes]:
    fat = gpu_libraries.fat_binary(["75", "90a"], ["90"])
    bundles = (gpu_libraries.bundle(["gfx90a"], version=version) for version in range(4))
    yield gpu_libraries.library(cuda=["75", "120"], ptx=["120"], hip=["gfx1100"], isa=7)
    yield gpu_libraries.pe({".nv_fatb": fat})
    yield gpu_libraries.mach({"__nv_fatbin": fat})
    yield from (fat, *bundles)
