"""Small real wheels, made in memory: enough for an installer, cheap enough for thousands."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import itertools
import json
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

PURE = "py3-none-any"
V0_2_0 = "https://variants-schema.wheelnext.dev/v0.2.0.json"

Variants = Mapping[str, Mapping[str, Mapping[str, list[str]]]]


@dataclass(frozen=True)
class Wheel:
    """A wheel to be: what is in it that tests care about.

    Attributes:
        name, version, tag: as in its filename.
        label: variant label, None for a non-variant wheel.
        requires: ``Requires-Dist`` values.
        variant_json: contents of its ``variant.json``: text as it is, anything else as JSON.
        files: contents of more files, by path.
        extras: ``Provides-Extra`` values.
        build_tag: its build tag.
        requires_python: ``Requires-Python`` value.
        description: what comes after the fields of METADATA.
    """

    name: str
    version: str
    label: str | None = None
    tag: str = PURE
    requires: tuple[str, ...] = ()
    variant_json: Any = None
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    extras: tuple[str, ...] = ()
    build_tag: str = ""
    requires_python: str = ""
    description: str = ""

    @property
    def filename(self) -> str:
        """The filename, with the label."""
        parts = [self.name.replace("-", "_"), self.version, self.build_tag, self.tag, self.label]
        return "-".join(part for part in parts if part) + ".whl"

    def tags(self) -> list[str]:
        """Return the tags that `tag` stands for, one by one."""
        parts = (part.split(".") for part in self.tag.split("-"))
        return ["-".join(combination) for combination in itertools.product(*parts)]

    def metadata(self) -> bytes:
        """Return the contents of ``METADATA``."""
        lines = ["Metadata-Version: 2.1", f"Name: {self.name}", f"Version: {self.version}"]
        lines += [f"Requires-Python: {self.requires_python}"] if self.requires_python else []
        lines += [f"Provides-Extra: {extra}" for extra in self.extras]
        lines += [f"Requires-Dist: {requirement}" for requirement in self.requires]
        lines += ["", self.description] if self.description else []
        return ("\n".join(lines) + "\n").encode()

    def build(self) -> bytes:
        """Return the contents of the file; the same for the same wheel."""
        info = f"{self.name.replace('-', '_')}-{self.version}.dist-info"
        module = self.name.replace("-", "_")
        files: dict[str, bytes] = {
            f"{module}/__init__.py": f"LABEL = {self.label!r}\n".encode(),
            **{
                path: data.encode() if isinstance(data, str) else data
                for path, data in self.files.items()
            },
            f"{info}/METADATA": self.metadata(),
            f"{info}/WHEEL": (
                "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\n"
                + "".join(f"Tag: {tag}\n" for tag in self.tags())
            ).encode(),
        }
        if self.variant_json is not None:
            text = self.variant_json
            files[f"{info}/variant.json"] = (
                text.encode() if isinstance(text, str) else json.dumps(text, indent=2).encode()
            )
        record = [f"{path},sha256={_digest(data)},{len(data)}" for path, data in files.items()] + [
            f"{info}/RECORD,,"
        ]
        files[f"{info}/RECORD"] = ("\n".join(record) + "\n").encode()
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for path, data in files.items():
                is_large = len(data) > 2**24  # it would take a second each
                info_of = zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0))
                archive.writestr(info_of, data, zipfile.ZIP_STORED if is_large else None)
        return buffer.getvalue()


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


@dataclass(frozen=True)
class Release:
    """One version with its variants, as a publisher has it: the index metadata and the wheels.

    Attributes:
        name, version: of the release.
        metadata: what is in its index-level metadata file.
        requires: ``Requires-Dist`` values of every wheel.
        tags: there is a wheel for each, of every label.
        non_variant: there are non-variant wheels as well.
    """

    name: str
    version: str
    metadata: Mapping[str, Any]
    requires: tuple[str, ...] = ()
    tags: tuple[str, ...] = (PURE,)
    non_variant: bool = False

    @property
    def metadata_filename(self) -> str:
        """Name of the index-level metadata file."""
        return f"{self.name.replace('-', '_')}-{self.version}-variants.json"

    def wheels(self) -> Iterable[Wheel]:
        """Yield the wheels: labels in the order of the metadata, the non-variant one last."""
        for tag in self.tags:
            for label, properties in self.metadata["variants"].items():
                label = "null" if label == "00000000" else label
                own = {**self.metadata, "variants": {label: properties}}
                yield Wheel(self.name, self.version, label, tag, self.requires, own)
            if self.non_variant:
                yield Wheel(self.name, self.version, None, tag, self.requires)


@dataclass(frozen=True)
class SourceDistribution:
    """A source distribution whose build backend is in it: it needs nothing but *build_requires*.

    Attributes:
        name, version: of the project.
        build_requires: requirements of the build, imported by the backend when it builds.
        requires: ``Requires-Dist`` values, which hold for the wheel that is built (PEP 643); None
            where they are not known before.
        extras: ``Provides-Extra`` values.
    """

    name: str
    version: str
    build_requires: tuple[str, ...] = ()
    requires: tuple[str, ...] | None = None
    extras: tuple[str, ...] = ()

    @property
    def filename(self) -> str:
        """The filename."""
        return f"{self.name}-{self.version}.tar.gz"

    def build(self) -> bytes:
        """Return the contents of the file; the same for the same sources."""
        wheel = Wheel(self.name, self.version, requires=self.requires or (), extras=self.extras)
        info = wheel.metadata()
        if self.requires is not None:
            info = info.replace(b"Metadata-Version: 2.1", b"Metadata-Version: 2.2")
        backend = (
            f"import base64, {', '.join((*self.build_requires, 'os'))}\n"
            f"WHEEL = {base64.b64encode(wheel.build())!r}\n"
            "def build_wheel(folder, config_settings=None, metadata_directory=None):\n"
            f"    with open(os.path.join(folder, {wheel.filename!r}), 'wb') as file:\n"
            "        file.write(base64.b64decode(WHEEL))\n"
            f"    return {wheel.filename!r}\n"
        )
        pyproject = (
            f"[build-system]\nrequires = {json.dumps(list(self.build_requires))}\n"
            'build-backend = "backend"\nbackend-path = ["."]\n'
        )
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            for path, data in {
                "PKG-INFO": info,
                "backend.py": backend.encode(),
                "pyproject.toml": pyproject.encode(),
            }.items():
                entry = tarfile.TarInfo(f"{self.name}-{self.version}/{path}")
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
        return gzip.compress(buffer.getvalue(), mtime=0)


def metadata(
    variants: Variants,
    *,
    namespaces: Iterable[str],
    providers: Mapping[str, Any],
    schema: str = V0_2_0,
) -> dict[str, Any]:
    """Return index metadata as a publisher would write it."""
    return {
        "$schema": schema,
        "default-priorities": {"namespace": list(namespaces)},
        "providers": dict(providers),
        "variants": {label: dict(properties) for label, properties in variants.items()},
    }


NVIDIA = {
    "requires": ["nvidia-variant-provider>=0.0.1,<1.0.0"],
    "plugin-api": "nvidia_variant_provider.plugin:NvidiaVariantPlugin",
}
X86_64 = {
    "requires": ["provider-variant-x86-64>=0.0.1,<1.0.0"],
    "plugin-api": "provider_variant_x86_64.plugin:X8664Plugin",
}
