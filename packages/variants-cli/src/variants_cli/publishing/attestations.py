"""Attestations (PEP 740): who published a file, signed, beside the file and uploaded with it.

``FILE.publish.attestation``, ``FILE.slsa.attestation``, … hold one attestation object each. They
are checked without a network before anything is uploaded: that each is of the bytes and the name of
its file. An attestation of the plain wheel is not one of the variant wheel that was made of it.
Signatures and certificates are for the index and for installers to verify.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from packaging.utils import InvalidSdistFilename, parse_sdist_filename

from pep_variants.errors import InvalidWheelFilename, printable, shortened
from pep_variants.formats.tree import Tree
from pep_variants.model.filename import parse_filename
from pep_variants.model.label import split_label

from .certificate_claims import certificate_claims
from .errors import PublishError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from ..indexing.wheelhouse import Distribution

SUFFIX = ".attestation"
MAX_BYTES = 1_000_000
MAX_FILES = 20
"""Attestations of one distribution."""

STATEMENT = "https://in-toto.io/Statement/v1"

_SHOWN = 10


class AttestationError(PublishError):
    """An attestation that is missing, malformed, or of another file."""


@dataclass(frozen=True)
class Attestation:
    """One attestation object.

    Attributes:
        path: the file it is from.
        predicate_type: URI of what is attested, such as
            ``https://docs.pypi.org/attestations/publish/v1``.
        text: the object as JSON on one line.
    """

    path: Path
    predicate_type: str
    text: str


def attestations_of(
    distributions: Iterable[Distribution], *, required: bool
) -> Mapping[Path, tuple[Attestation, ...]]:
    """Return the attestations beside *distributions*, by the path of the distribution.

    Args:
        distributions: wheels and source distributions.
        required: each of them needs one.

    Raises:
        AttestationError: one is broken or of another file, or some are missing; all problems.
    """
    distributions = tuple(distributions)
    files = _files({distribution.path.parent for distribution in distributions})
    found: dict[Path, tuple[Attestation, ...]] = {}
    missing: list[str] = []
    problems: list[str] = []
    for distribution in distributions:
        try:
            paths = files.get(distribution.path, ())
            found[distribution.path] = _read(distribution, paths)
        except AttestationError as error:
            problems.append(str(error))
            continue
        if not found[distribution.path]:
            missing.append(distribution.path.name)
    if missing and required:
        problems.append(
            f"no attestations of {_listed(missing)}: make FILE.publish.attestation beside each, or "
            "publish with --no-attestations"
        )
    if problems:
        more = len(problems) - _SHOWN
        text = "; ".join(problems[:_SHOWN]) + (f"; and {more} more" if more > 0 else "")
        raise AttestationError(text)
    return found


def read_attestation(path: Path, filename: str, sha256: str) -> Attestation:
    """Read the attestation at *path* and check that it is of a file.

    Args:
        path: of the attestation.
        filename: of the distribution.
        sha256: of the distribution, hexadecimal.

    Raises:
        AttestationError: it is no attestation object of version 1, or of another file.
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise AttestationError(f"{path.name}: {error.strerror or error}") from None
    predicate_type, text = check_attestation(data, path.name, (filename, sha256))
    return Attestation(path, predicate_type, text)


def check_attestation(data: bytes, source: str, file: tuple[str, str]) -> tuple[str, str]:
    """Check an attestation object; return its predicate type, and the object on one line.

    Args:
        data: JSON.
        source: its name, for messages.
        file: name and SHA-256 (hexadecimal) of what it has to be of.

    Raises:
        AttestationError: it is no attestation object of version 1, or of another file.
    """

    def problem(place: str, words: str) -> AttestationError:
        return AttestationError(": ".join(filter(None, (source, place, words))))

    if len(data) > MAX_BYTES:
        raise problem("", f"larger than {MAX_BYTES:,} bytes")
    tree = Tree(problem, "object")
    whole = tree.mapping(_loaded(data, problem, ""), "")
    if whole.get("version") != 1 or isinstance(whole["version"], bool):
        raise problem("version", f"expected 1, found {shortened(whole.get('version'))}")
    material = tree.table(whole, "verification_material")
    _bytes(tree, material, "certificate", "verification_material")
    entries = tree.tables(material, "transparency_entries", "verification_material")
    if not entries:
        raise problem("verification_material.transparency_entries", "empty: it needs one or more")
    envelope = tree.table(whole, "envelope")
    _bytes(tree, envelope, "signature", "envelope")
    place = "envelope.statement"
    statement = tree.mapping(
        _loaded(_bytes(tree, envelope, "statement", "envelope"), problem, place), place
    )
    if statement.get("_type") != STATEMENT:
        found = shortened(statement.get("_type"))
        raise problem(f"{place}._type", f"expected {STATEMENT}, found {found}")
    subjects = tree.tables(statement, "subject", place)
    if len(subjects) != 1:
        raise problem(
            f"{place}.subject", f"{len(subjects)} files: an index takes attestations of one file"
        )
    name = tree.string(subjects[0], "name", f"{place}.subject") or ""
    digest = tree.table(subjects[0], "digest", f"{place}.subject").get("sha256")
    _compare(problem, (name, digest), file)
    predicate_type = tree.string(statement, "predicateType", place)
    if not predicate_type:
        raise problem(f"{place}.predicateType", "missing")
    return predicate_type, json.dumps(whole, separators=(",", ":"))


def form_value(attestations: Sequence[str]) -> str:
    """Return the field ``attestations`` of the upload form: a JSON list of attestation objects."""
    return f"[{','.join(attestations)}]"


def provenance(attestations: Sequence[str]) -> bytes | None:
    """Return the provenance object (PEP 740) that an index serves with a file, None without any.

    PyPI names the trusted publisher that uploaded the file; here it is the identity in the signing
    certificate, as it is verified anyway. Attestations of one identity are one bundle.

    Args:
        attestations: JSON of checked attestation objects, see `read_attestation`.
    """
    bundles: dict[str, dict[str, Any]] = {}
    for text in attestations:
        tree = json.loads(text)
        certificate = base64.b64decode(tree["verification_material"]["certificate"])
        publisher = publisher_of(certificate)
        key = json.dumps(publisher, sort_keys=True)
        bundle = bundles.setdefault(key, {"publisher": publisher, "attestations": []})
        bundle["attestations"].append(tree)
    if not bundles:
        return None
    whole = {"version": 1, "attestation_bundles": list(bundles.values())}
    return json.dumps(whole, separators=(",", ":")).encode()


def provenances(distributions: Sequence[Distribution]) -> list[bytes | None]:
    """Return the provenance object of each of *distributions*, from the attestations beside them.

    Raises:
        AttestationError: as `attestations_of`.
    """
    found = attestations_of(distributions, required=False)
    return [provenance([one.text for one in found[item.path]]) for item in distributions]


def publisher_of(certificate: bytes) -> dict[str, str | None]:
    """Return the publisher that a signing certificate names, as PyPI writes those of its kinds.

    Args:
        certificate: of Sigstore, in DER. One that cannot be read, and identities that are of none
            of PyPI's kinds, give the kind ``Sigstore``.
    """
    claims = certificate_claims(certificate)
    repository, config = claims.get("repository", ""), claims.get("config", "")
    workflow = config.removeprefix(repository).partition("@")[0]
    match claims.get("issuer"):
        case "https://token.actions.githubusercontent.com":
            return {
                "kind": "GitHub",
                "repository": repository.removeprefix("https://github.com/"),
                "workflow": workflow.rpartition("/")[2],
                "environment": None,
            }
        case "https://gitlab.com":
            return {
                "kind": "GitLab",
                "repository": repository.removeprefix("https://gitlab.com/"),
                "workflow_filepath": workflow.removeprefix("//"),
                "environment": None,
            }
        case "https://accounts.google.com" if "email" in claims:
            return {"kind": "Google", "email": claims["email"]}
        case issuer:
            identity = claims.get("email") or config or None
            return {"kind": "Sigstore", "issuer": issuer, "identity": identity}


def _files(folders: Iterable[Path]) -> Mapping[Path, Sequence[Path]]:
    """Return the attestations in *folders*, sorted, by the path of their file."""
    found: dict[Path, list[Path]] = {}
    for folder in folders:
        for path in sorted(folder.glob(f"*{SUFFIX}")):
            name = path.name.removesuffix(SUFFIX)
            # FILE.publish.attestation, and FILE.attestation of older tools.
            for filename in (name, name.rpartition(".")[0]):
                found.setdefault(folder / filename, []).append(path)
    return found


def _read(distribution: Distribution, paths: Sequence[Path]) -> tuple[Attestation, ...]:
    filename = distribution.path.name
    if len(paths) > MAX_FILES:
        raise AttestationError(f"{filename}: {len(paths)} attestations, at most {MAX_FILES}")
    found = tuple(read_attestation(path, filename, distribution.sha256) for path in paths)
    kinds = [attestation.predicate_type for attestation in found]
    for attestation in found:
        if kinds.count(attestation.predicate_type) > 1:
            raise AttestationError(
                f"{filename}: two attestations of the kind "
                f"{shortened(attestation.predicate_type)}: remove one of "
                f"{_listed([path.name for path in paths])}"
            )
    return found


def _compare(problem: Any, found: tuple[str, object], expected: tuple[str, str]) -> None:  # noqa: ANN401
    name, digest = found
    filename, sha256 = expected
    if _identity(name) == _identity(filename):
        if not isinstance(digest, str):
            raise problem("envelope.statement.subject.digest", "no SHA-256 of the file")
        if digest.lower() != sha256:
            raise problem(
                "",
                f"of other contents (SHA-256 {shortened(digest)[1:-1][:12]}…, that of the file is "
                f"{sha256[:12]}…): attest the file again",
            )
        return
    plain, label = split_label(filename)
    if label is not None and _identity(name) == _identity(plain):
        words = f"of the plain wheel {printable(name)}: attest the variant wheel itself"
    else:
        words = f"of {shortened(name)[1:-1] or 'no file'}: attest this file"
    raise problem("", words)


def _identity(filename: str) -> object:
    """Return what two spellings of the name of one file have in common (tags in another order)."""
    try:
        return parse_filename(filename)
    except InvalidWheelFilename:
        pass
    try:
        return (*parse_sdist_filename(filename[:500]), filename.endswith(".zip"))
    except InvalidSdistFilename:
        return filename


def _loaded(data: bytes, problem: Any, place: str) -> object:  # noqa: ANN401
    try:
        return json.loads(data, parse_constant=_refused)
    except (ValueError, RecursionError):
        raise problem(place, "not valid JSON") from None


def _refused(constant: str) -> None:
    raise ValueError(constant)  # NaN, which is no JSON


def _bytes(tree: Tree, parent: Mapping[str, Any], key: str, path: str) -> bytes:
    text = tree.string(parent, key, path)
    try:
        # Line breaks are allowed, as in the objects of pypi-attestations.
        data = base64.b64decode("".join((text or "").split()), validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if not data:
        raise tree.error(f"{path}.{key}", "missing, or not base64")
    return data


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
