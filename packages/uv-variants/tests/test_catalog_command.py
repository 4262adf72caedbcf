"""`uv-variants catalog`; which settings count is tested with `variants catalog`."""

import os

import pytest

from uv_variants import main
from variants_catalog._catalogs import shipped_catalog


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    """Run it in a home of its own; return exit code, output, and errors."""
    for name in [name for name in os.environ if name.startswith("VARIANTS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)

    def run(*words):
        with pytest.raises(SystemExit) as ended:
            main.main(["catalog", *words])
        said = capsys.readouterr()
        return ended.value.code, said.out, said.err

    return run


@pytest.mark.skipif(os.name == "nt", reason="the folder of settings is another one there")
def test_enable_and_disable(command, tmp_path):
    path = tmp_path / "config" / "variants" / "variants.toml"
    path.parent.mkdir(parents=True, mode=0o700)
    path.write_text("# mine\ncoherent = []\n")
    names = list(shipped_catalog().names())
    line = f"uv-variants: {path}: catalog = 'default', {len(names)} projects\n"
    for _ in range(2):
        assert command("enable") == (0, "", line)
    assert path.read_text() == '# mine\ncoherent = []\ncatalog = "default"\n'
    code, out, err = command("list")
    assert (code, err) == (0, "")
    assert [row.split()[0] for row in out.splitlines()] == ["project", *names]
    assert command("disable") == (0, "", f"uv-variants: {path}: no catalog\n")
    assert path.read_text() == "# mine\ncoherent = []\n"


def test_errors(command, monkeypatch, tmp_path):
    code, _, err = command("enable", "missing.toml")
    assert (code, err) == (
        1,
        f"uv-variants: {tmp_path / 'missing.toml'}: cannot be read: No such file or directory\n",
    )
    code, _, err = command("enable", "http://127.0.0.1:9/catalog.json")
    assert code == 1
    assert err.startswith("uv-variants: http://127.0.0.1:9/catalog.json: cannot connect")
    assert command("enabel")[0] == 2
    monkeypatch.setenv("VARIANTS_CATALOG", "missing.toml")
    code, _, err = command("enable")
    assert code == 0
    assert err.endswith(" says so and counts more\n")
