"""Attestations (PEP 740): those that PyPI has, and what is refused before an upload."""

import base64
import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from variants_cli.indexing.wheelhouse import read_distribution
from variants_cli.publishing.attestations import (
    MAX_BYTES,
    AttestationError,
    attestations_of,
    form_value,
    provenance,
    publisher_of,
    read_attestation,
)
from variants_cli.publishing.certificate_claims import certificate_claims

REAL = Path(__file__).parent / "attestations"
PUBLISH = "https://docs.pypi.org/attestations/publish/v1"
SLSA = "https://slsa.dev/provenance/v1"
RFC8785 = "rfc8785-0.1.2-py3-none-any.whl"
TOOL = "pypi_attestations-0.0.19.tar.gz"


def real(filename):
    return json.loads((REAL / filename).read_text())


def statement_of(tree):
    return json.loads(base64.b64decode(tree["envelope"]["statement"]))


def with_statement(tree, statement):
    text = base64.b64encode(json.dumps(statement).encode()).decode()
    return {**tree, "envelope": {**tree["envelope"], "statement": text}}


def attestation_of(path, kind=PUBLISH):
    """An attestation of the file at *path*, but for the signature."""
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [
            {"name": path.name, "digest": {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}}
        ],
        "predicateType": kind,
        "predicate": None,
    }
    return json.dumps(with_statement(real(f"{RFC8785}.publish.attestation"), statement))


def beside(path, kind="publish"):
    return path.with_name(f"{path.name}.{kind}.attestation")


@pytest.mark.parametrize(
    ("filename", "kind"),
    [
        (f"{RFC8785}.publish.attestation", PUBLISH),
        ("gitlab_oidc_project-0.0.3.tar.gz.publish.attestation", PUBLISH),
        (f"{TOOL}.publish.attestation", PUBLISH),
        (f"{TOOL}.slsa.attestation", SLSA),
    ],
)
def test_real_attestations(filename, kind):
    (subject,) = statement_of(real(filename))["subject"]
    found = read_attestation(REAL / filename, subject["name"], subject["digest"]["sha256"])
    assert found.predicate_type == kind
    assert json.loads(found.text) == real(filename)
    assert "\n" not in found.text


@pytest.mark.parametrize(
    ("filename", "publisher"),
    [
        (
            f"{TOOL}.publish.attestation",
            {
                "kind": "GitHub",
                "repository": "trailofbits/pypi-attestations",
                "workflow": "release.yml",
                "environment": None,
            },
        ),
        (
            "gitlab_oidc_project-0.0.3.tar.gz.publish.attestation",
            {
                "kind": "GitLab",
                "repository": "facutuesca/gitlab-oidc-project",
                "workflow_filepath": ".gitlab-ci.yml",
                "environment": None,
            },
        ),
        (
            f"{RFC8785}.publish.attestation",
            {
                "kind": "Sigstore",
                "issuer": "https://github.com/login/oauth",
                "identity": "william@yossarian.net",
            },
        ),
    ],
)
def test_publishers(filename, publisher):
    tree = real(filename)
    assert json.loads(provenance([json.dumps(tree)])) == {
        "version": 1,
        "attestation_bundles": [{"publisher": publisher, "attestations": [tree]}],
    }


def test_publisher_as_on_pypi():
    whole = real("gcb_attestation_test-0.0.0.tar.gz.provenance")
    (bundle,) = whole["attestation_bundles"]
    texts = [json.dumps(entry) for entry in bundle["attestations"]]
    assert json.loads(provenance(texts)) == whole


def test_attestations_of_one_publisher_are_one_bundle():
    trees = [real(f"{TOOL}.publish.attestation"), real(f"{TOOL}.slsa.attestation")]
    other = real(f"{RFC8785}.publish.attestation")
    texts = [json.dumps(tree) for tree in (*trees, other)]
    bundles = json.loads(provenance(texts))["attestation_bundles"]
    assert [bundle["attestations"] for bundle in bundles] == [trees, [other]]
    assert json.loads(form_value(texts)) == [*trees, other]
    assert provenance([]) is None
    assert form_value([]) == "[]"


@given(st.binary(max_size=400))
def test_any_certificate_has_a_publisher(data):
    assert publisher_of(data)["kind"] == "Sigstore"


@given(st.integers(0, 2000), st.integers(0, 255))
def test_damaged_certificates(position, value):
    tree = real(f"{TOOL}.publish.attestation")
    data = bytearray(base64.b64decode(tree["verification_material"]["certificate"]))
    data[position % len(data)] = value
    assert isinstance(certificate_claims(bytes(data)), dict)
    assert isinstance(certificate_claims(bytes(data[:position])), dict)


@pytest.fixture
def wheel(build_wheel, variant_json, tmp_path):
    build_wheel("example_pkg-1.0-py3-none-any.whl")
    return build_wheel(
        "example_pkg-1.0-py3-none-any-x86_64_v3.whl",
        variant=variant_json("x86_64_v3", {"x86_64": {"level": ["v3"]}}),
    )


def found(*paths, required=False):
    result = attestations_of([read_distribution(path) for path in paths], required=required)
    return {path.name: [entry.path.name for entry in entries] for path, entries in result.items()}


def test_files_beside_a_distribution(wheel):
    plain = wheel.with_name("example_pkg-1.0-py3-none-any.whl")
    beside(wheel).write_text(attestation_of(wheel))
    beside(wheel, "slsa").write_text(attestation_of(wheel, SLSA))
    beside(plain).write_text(attestation_of(plain))
    assert found(wheel, plain) == {
        wheel.name: [beside(wheel).name, beside(wheel, "slsa").name],
        plain.name: [beside(plain).name],
    }
    assert found(wheel, required=True)


def test_missing_ones_are_named(wheel):
    plain = wheel.with_name("example_pkg-1.0-py3-none-any.whl")
    assert found(wheel, plain) == {wheel.name: [], plain.name: []}
    beside(plain).write_text(attestation_of(plain))
    with pytest.raises(AttestationError) as caught:
        found(wheel, plain, required=True)
    assert str(caught.value) == (
        f"no attestations of {wheel.name}: make FILE.publish.attestation beside each, or publish "
        "with --no-attestations"
    )


def test_an_attestation_of_the_plain_wheel(wheel):
    plain = wheel.with_name("example_pkg-1.0-py3-none-any.whl")
    beside(wheel).write_text(attestation_of(plain))
    with pytest.raises(AttestationError) as caught:
        found(wheel)
    assert str(caught.value) == (
        f"{wheel.name}.publish.attestation: of the plain wheel {plain.name}: attest the variant "
        "wheel itself"
    )


def test_an_attestation_of_other_bytes(wheel):
    beside(wheel).write_text(attestation_of(wheel))
    wheel.write_bytes(wheel.read_bytes().replace(b"1.0", b"1.1", 1))
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    with pytest.raises(AttestationError, match="of other contents"):
        read_attestation(beside(wheel), wheel.name, digest)


def test_two_of_one_kind(wheel):
    beside(wheel).write_text(attestation_of(wheel))
    beside(wheel, "again").write_text(attestation_of(wheel))
    with pytest.raises(AttestationError, match="two attestations of the kind"):
        found(wheel)


def test_tags_in_another_order(tmp_path):
    wheel = tmp_path / "a-1.0-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64-cu128.whl"
    wheel.write_bytes(b"")
    text = attestation_of(wheel)
    other = wheel.name.replace(
        "manylinux_2_17_x86_64.manylinux2014_x86_64", "manylinux2014_x86_64.manylinux_2_17_x86_64"
    )
    path = tmp_path / f"{other}.publish.attestation"
    path.write_text(text)
    digest = hashlib.sha256(b"").hexdigest()
    assert read_attestation(path, other, digest).predicate_type == PUBLISH
    with pytest.raises(AttestationError, match="attest this file"):
        read_attestation(path, other.replace("cu128", "cu129"), digest)


def change(tree, place, value):
    """A copy of *tree* with *value* at the keys *place*, or without it."""
    copy = json.loads(json.dumps(tree))
    inner = copy
    for key in place[:-1]:
        inner = inner[key]
    if value is None:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return copy


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (["version"], 2, "version: expected 1, found 2"),
        (["version"], True, "version: expected 1, found True"),
        (["version"], None, "version: expected 1, found None"),
        (["verification_material"], [], "verification_material: expected an object"),
        (["verification_material", "certificate"], None, "certificate: missing"),
        (["verification_material", "certificate"], "é", "not base64"),
        (["verification_material", "transparency_entries"], [], "it needs one or more"),
        (["verification_material", "transparency_entries"], [1], "transparency_entries"),
        (["envelope", "signature"], 5, "signature: expected a string"),
        (["envelope", "statement"], "bm8=", "envelope.statement: not valid JSON"),
        (["envelope", "statement"], "TmFO", "envelope.statement: not valid JSON"),
        (["envelope", "statement"], "MQ==", "envelope.statement: expected an object"),
        (["envelope"], None, "signature: missing"),
    ],
)
def test_malformed_attestations(tmp_path, place, value, words):
    path = tmp_path / f"{RFC8785}.publish.attestation"
    path.write_text(json.dumps(change(real(path.name), place, value)))
    with pytest.raises(AttestationError) as caught:
        read_attestation(path, RFC8785, "0" * 64)
    assert words in str(caught.value)
    assert str(caught.value).startswith(path.name)


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (["_type"], "https://in-toto.io/Statement/v0.1", "expected https://in-toto.io/Statement/"),
        (["subject"], [], "0 files"),
        (["subject"], [{}, {}], "2 files: an index takes attestations of one file"),
        (["subject", 0, "name"], None, "of no file: attest this file"),
        (["subject", 0, "name"], "\x1b[2J", r"of \x1b[2J: attest this file"),
        (["subject", 0, "digest"], {"sha512": "0"}, "subject.digest: no SHA-256 of the file"),
        (["subject", 0, "digest"], {"sha256": "0"}, "of other contents (SHA-256 0…, that of"),
        (["predicateType"], None, "predicateType: missing"),
    ],
)
def test_malformed_statements(tmp_path, place, value, words):
    path = tmp_path / f"{RFC8785}.publish.attestation"
    tree = real(path.name)
    statement = statement_of(tree)
    digest = statement["subject"][0]["digest"]["sha256"]
    path.write_text(json.dumps(with_statement(tree, change(statement, place, value))))
    with pytest.raises(AttestationError) as caught:
        read_attestation(path, RFC8785, digest)
    assert words in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not valid JSON"),
        (b"\xff", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"[]", "expected an object"),
        (b" " * MAX_BYTES + b"{}", "larger than"),
        (b'{"version": NaN}', "not valid JSON"),
    ],
)
def test_no_attestations(tmp_path, data, words):
    path = tmp_path / "a.attestation"
    path.write_bytes(data)
    with pytest.raises(AttestationError, match=words):
        read_attestation(path, "a", "")
    with pytest.raises(AttestationError, match=r"b\.attestation: No such file"):
        read_attestation(tmp_path / "b.attestation", "b", "")
