"""Small real wheels, made in memory: enough for an installer, cheap enough for thousands."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

PURE = "py3-none-any"
V0_2_0 = "https://variants-schema.wheelnext.dev/v0.2.0.json"

Variants = Mapping[str, Mapping[str, Mapping[str, list[str]]]]


@dataclass(frozen=True)
class Wheel:
    """A wheel to be: what is in it that tests care about."""

    name: str
    version: str
    label: str | None = None
    tag: str = PURE
    requires: tuple[str, ...] = ()
    variant_json: Any = None
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def filename(self) -> str:
        label = f"-{self.label}" if self.label else ""
        return f"{self.name.replace('-', '_')}-{self.version}-{self.tag}{label}.whl"

    def metadata(self) -> bytes:
        lines = ["Metadata-Version: 2.1", f"Name: {self.name}", f"Version: {self.version}"]
        lines += [f"Requires-Dist: {requirement}" for requirement in self.requires]
        return ("\n".join(lines) + "\n").encode()

    def build(self) -> bytes:
        info = f"{self.name.replace('-', '_')}-{self.version}.dist-info"
        module = self.name.replace("-", "_")
        files: dict[str, bytes] = {
            f"{module}/__init__.py": f"LABEL = {self.label!r}\n".encode(),
            **{path: text.encode() for path, text in self.files.items()},
            f"{info}/METADATA": self.metadata(),
            f"{info}/WHEEL": (
                f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {self.tag}\n"
            ).encode(),
        }
        if self.variant_json is not None:
            text = self.variant_json
            files[f"{info}/variant.json"] = (
                text.encode() if isinstance(text, str) else json.dumps(text, indent=2).encode()
            )
        record = [
            f"{path},sha256={_digest(data)},{len(data)}" for path, data in files.items()
        ] + [f"{info}/RECORD,,"]
        files[f"{info}/RECORD"] = ("\n".join(record) + "\n").encode()
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for path, data in files.items():
                archive.writestr(zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0)), data)
        return buffer.getvalue()


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


@dataclass(frozen=True)
class Release:
    """One version with its variants, as a publisher has it: the index metadata and the wheels."""

    name: str
    version: str
    metadata: Mapping[str, Any]
    requires: tuple[str, ...] = ()
    tags: tuple[str, ...] = (PURE,)
    non_variant: bool = False

    @property
    def metadata_filename(self) -> str:
        return f"{self.name.replace('-', '_')}-{self.version}-variants.json"

    def wheels(self) -> Iterable[Wheel]:
        for tag in self.tags:
            for label, properties in self.metadata["variants"].items():
                label = "null" if label == "00000000" else label  # noqa: PLW2901
                own = {**self.metadata, "variants": {label: properties}}
                yield Wheel(self.name, self.version, label, tag, self.requires, own)
            if self.non_variant:
                yield Wheel(self.name, self.version, None, tag, self.requires)


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
