"""Lock files that are refused, and tables that cost a package its variants."""

import pytest

from pep_variants import limits
from pep_variants._detect.detector import Detector
from pep_variants.errors import LockError
from variants_index._lock_files import read_lock, select_locked
from variants_index.target import make_target

TARGET = make_target(python_version="3.12", platforms=["manylinux_2_28_x86_64"], name="linux")

HEAD = 'lock-version = "1.0"\ncreated-by = "x"\n'
PACKAGE = f'{HEAD}[[packages]]\nname = "demo"\nversion = "1.0"\n'
WHEELS = (
    'wheels = [{url = "https://h/demo-1.0-py3-none-any-cu128.whl", hashes = {sha256 = "00"}}]\n'
)
VARIANTS = "[packages.variants-json]\ndefault-priorities = {namespace = []}\nvariants = {}"
PLAIN = '{url = "https://h/demo-1.0-py3-none-any.whl", hashes = {sha256 = "00"}}, '


def selected(path):
    return select_locked(read_lock(path), TARGET, Detector().platform)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read"),
        ("\xff", "not valid TOML"),
        ("", "Missing required value in 'lock-version'"),
        ("x", "not valid TOML"),
        ("#" * (limits.LOCK_BYTES + 1), "larger than 4194304 bytes"),
        ('lock-version = "2.0"\ncreated-by = "x"\npackages = []', "2.0 is not supported"),
        (HEAD + "packages = 3", "packages"),
        (PACKAGE, "packages"),
        (PACKAGE + WHEELS.replace("demo-1.0", "other-1.0") + VARIANTS, "not consistent"),
        (PACKAGE + WHEELS.replace('{sha256 = "00"}', "{}") + VARIANTS, "At least one hash"),
        # Numbers of thousands of digits, which `int` refuses.
        (f'{HEAD}packages = [{{name = "a", version = "{"9" * 5000}"}}]', ""),
        (f'{HEAD}packages = [{{name = "a", marker = "python_version > \'{"9" * 5000}\'"}}]', ""),
    ],
    ids=range(12),
)
def test_broken_locks(tmp_path, text, message):
    path = tmp_path / "pylock.toml"
    if text is not None:
        path.write_text(text, "latin-1")
    with pytest.raises(LockError, match=message) as caught:
        selected(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("limit", "rest", "message"),
    [
        ("LOCK_MARKER_CHARACTERS",
         'environments = ["os_name == 5", "os_name == 6"]\nrequires-python = ">=3"\n'
         '[[packages]]\nname = "a"\nmarker = "x"\nrequires-python = "y"\n',
         "markers and requires-python of 29 characters, at most 28 are read"),
        ("LOCK_TAGS",
         'packages = [{wheels = [{name = "a-1-a.b-c.d-any.whl"}, {url = "https://x/a-1-a-b-c%2Ed.whl"}]}'
         ", {wheels = [3]}, 3]",
         "filenames that stand for 6 platform tags, at most 5 are read"),
    ],
)  # fmt: skip
def test_what_a_lock_takes_to_be_read(tmp_path, monkeypatch, limit, rest, message):
    path = tmp_path / "pylock.toml"
    path.write_text(HEAD + rest)
    most = int(message.split()[-3])
    monkeypatch.setattr(limits, limit, most)
    with pytest.raises(LockError, match=message):
        read_lock(path)
    monkeypatch.setattr(limits, limit, most + 1)
    with pytest.raises(LockError) as caught:  # of the format
        read_lock(path)
    assert message not in str(caught.value)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("", "lists variant wheels, but no variants-json"),
        ("[packages.variants-json]\nvariants = 3", "variants-json: variants: expected an object"),
    ],
)
def test_tables_that_cost_a_package_its_variants(tmp_path, table, message):
    """The table breaks its schema: an error only where nothing else of the package is locked."""
    path = tmp_path / "pylock.toml"
    path.write_text(PACKAGE + WHEELS + table)
    with pytest.raises(LockError, match=message) as caught:
        selected(path)
    assert f"{path}: packages[0] (demo): its variant wheels cannot be used" in str(caught.value)
    path.write_text(PACKAGE + WHEELS.replace("[{", f"[{PLAIN}{{") + table)
    (item,) = selected(path)
    assert item.label is None
