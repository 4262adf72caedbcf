"""Platform keys and variants in lock files."""

import pytest

from pep_variants import limits
from uv_variants.lockfile import files_without_hash, locked_key

URL = "http://uv-variants.invalid/p/here/files/i/app/~/app-1.0-py3-none-any.whl"


@pytest.mark.parametrize(
    ("line", "number"),
    [
        (f'    {{ url = "{URL}" }},', 1),
        (f'    {{ url = "{URL}", size = 10 }},', 1),
        (f'    {{ url = "{URL}", hash = "sha256:0" }},', 0),
        (f'    {{ url = "{URL}", hash = "sha256:0", size = 10 }},', 0),
        ('    { url = "https://files.example/app-1.0-py3-none-any.whl" },', 0),
        (f'sdist = {{ url = "{URL}" }}', 1),
        ('source = { registry = "http://uv-variants.invalid/p/here/i/i/simple/" }', 0),
    ],
)
def test_files_without_hash(line, number):
    assert files_without_hash(f"[[package]]\n{line}\n") == number
    assert files_without_hash(f"{line}\n" * 3) == 3 * number


class TestKey:
    BASE = "http://uv-variants.invalid"

    @pytest.mark.parametrize("size", [0, 5 * limits.MIB, limits.LOCK_TEXT_BYTES - 100])
    def test_of_large_projects(self, tmp_path, size):
        path = tmp_path / "uv.lock"
        path.write_text("#" * size + f'\nurl = "{URL}"\n')
        warnings = []
        assert locked_key(path, self.BASE, warnings.append) == "here"
        assert warnings == []

    def test_there_is_none(self, tmp_path):
        (tmp_path / "uv.lock").write_text("version = 1\n")
        for path in (None, tmp_path / "missing", tmp_path / "uv.lock"):
            assert locked_key(path, self.BASE, pytest.fail) is None

    @pytest.mark.parametrize(
        ("body", "problem"),
        [(b"#" * (limits.LOCK_TEXT_BYTES + 1), "larger than"), (b"\xff", "is not UTF-8")],
    )
    def test_it_cannot_be_read(self, tmp_path, body, problem):
        path = tmp_path / "uv.lock"
        path.write_bytes(body)
        warnings = []
        assert locked_key(path, self.BASE, warnings.append) is None
        (warning,) = warnings
        assert f"{path}: {problem}" in warning
