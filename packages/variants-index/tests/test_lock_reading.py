"""Lock files that are refused, and tables that cost a package its variants."""

import re

import pytest

from pep_variants import limits
from pep_variants.detect.detector import Detector
from pep_variants.errors import LockError
from variants_index.lock_files import read_lock, select_locked
from variants_index.target import make_target

TARGET = make_target(python_version="3.12", platforms=["manylinux_2_28_x86_64"], name="linux")

HEAD = 'lock-version = "1.0"\ncreated-by = "x"\n'
PACKAGE = f'{HEAD}[[packages]]\nname = "demo"\nversion = "1.0"\n'
WHEELS = (
    'wheels = [{url = "https://h/demo-1.0-py3-none-any-cu128.whl", hashes = {sha256 = "00"}}]\n'
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Missing required value in 'lock-version'"),
        ("x", "not valid TOML"),
        ('lock-version = "2.0"\ncreated-by = "x"\npackages = []', "2.0 is not supported"),
        (HEAD + "packages = 3", "packages"),
        (PACKAGE, "packages"),
        (PACKAGE + WHEELS.replace("demo-1.0", "other-1.0") + "[packages.variants-json]\n"
         "default-priorities = {namespace = []}\nvariants = {}", "not consistent"),
        (PACKAGE + WHEELS.replace('{sha256 = "00"}', "{}") + "[packages.variants-json]\n"
         "default-priorities = {namespace = []}\nvariants = {}", "At least one hash"),
    ],
)  # fmt: skip
def test_broken_locks(tmp_path, text, message):
    path = tmp_path / "pylock.toml"
    path.write_text(text)
    with pytest.raises(LockError, match=message) as caught:
        read_lock(path)
    assert str(path) in str(caught.value)


SCHEMA = '"$schema" = "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json"\n'
GOOD = f'{SCHEMA}variants = {{}}\ndefault-priorities = {{namespace = ["ns"]}}\n'


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("", "lists variant wheels, but no variants-json"),
        ("variants = 3", "variants-json: variants: expected an object"),
        (f"{GOOD}providers = {{}}", "variants-json: providers: the schema has no such key"),
        (f"{GOOD}extra = 1", "variants-json: extra: the schema has no such key"),
        (GOOD.replace('["ns"]', '["ns"], feature = {}'), "feature: the schema has no such key"),
        (GOOD.replace("variants = {}\n", ""), "variants-json: variants: is missing"),
        (GOOD.replace('namespace = ["ns"]', ""), "default-priorities.namespace: is missing"),
        (GOOD.replace("variants = {}", 'variants = {cu128.ns.f = ["v", "v"]}'),
         "variants.cu128.ns.f: lists a value twice"),
        (GOOD.replace("peps/825/v0.1.1", "v9.0.0"), "format version 9.0.0"),
    ],
)  # fmt: skip
def test_tables_that_cost_a_package_its_variants(tmp_path, table, message):
    """The table breaks its schema: an error only where nothing else of the package is locked."""
    path = tmp_path / "pylock.toml"
    text = PACKAGE + WHEELS + (f"[packages.variants-json]\n{table}" if table else "")
    path.write_text(text)
    with pytest.raises(LockError, match=re.escape(message)) as caught:
        select_locked(read_lock(path), TARGET, Detector().platform)
    assert f"{path}: packages[0] (demo): its variant wheels cannot be used" in str(caught.value)
    plain = '{url = "https://h/demo-1.0-py3-none-any.whl", hashes = {sha256 = "00"}}, '
    path.write_text(text.replace("wheels = [", f"wheels = [{plain}"))
    (item,) = select_locked(read_lock(path), TARGET, Detector().platform)
    assert item.label is None


@pytest.mark.parametrize(
    "package",
    [
        f'{{name = "a", version = "{"9" * 5000}"}}',
        f'{{name = "a", marker = "python_version > \'{"9" * 5000}\'"}}',
    ],
    ids=["version", "marker"],
)
def test_numbers_of_thousands_of_digits(tmp_path, package):
    path = tmp_path / "pylock.toml"
    path.write_text(f"{HEAD}packages = [{package}]")
    with pytest.raises(LockError):
        select_locked(read_lock(path), TARGET, Detector().platform)


def test_large_locks_are_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr("pep_variants.formats.toml.loads", lambda text: pytest.fail("parsed"))
    path = tmp_path / "pylock.toml"
    path.write_bytes(b"#" * (limits.LOCK_BYTES + 1))
    with pytest.raises(LockError, match="larger than 4194304 bytes"):
        read_lock(path)


def test_no_lock(tmp_path):
    with pytest.raises(LockError, match="cannot be read"):
        read_lock(tmp_path / "pylock.toml")
    (tmp_path / "pylock.toml").write_bytes(b"\xff")
    with pytest.raises(LockError, match="not valid TOML"):
        read_lock(tmp_path / "pylock.toml")
