import io
import os
import sys

import pytest

from pep_variants import directories

FILE = 'allow-provider = ["acme"]\nprefer = ["acme"]\n'


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    """The user's directories, of this test alone."""
    data = tmp_path / "data"
    monkeypatch.setattr(directories, "user_data", lambda: data)
    for name in ("user_config", "system_config"):
        monkeypatch.setattr(directories, name, lambda: tmp_path / "none")
    for name in list(os.environ):
        if name.startswith("VARIANTS_"):
            monkeypatch.delenv(name)
    return data


@pytest.fixture
def checkout(tmp_path):
    folder = tmp_path / "check out"
    folder.mkdir()
    (folder / "variants.toml").write_text(FILE)
    return folder


@pytest.fixture
def answer(monkeypatch):
    def answer(text):
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))

    answer("")
    return answer


@pytest.fixture
def allowed(variants, checkout, monkeypatch):
    """Return the providers that are allowed in the checkout, and what is said on stderr."""

    def allowed():
        monkeypatch.chdir(checkout)
        done = variants("detect", "--verbose")
        rows = [line.split() for line in done.out.splitlines()]
        return [row[1] for row in rows if row[:1] == ["allowed"]], done.err

    return allowed


def test_approve(variants, checkout, allowed, answer):
    path = checkout / "variants.toml"
    providers, said = allowed()
    assert providers == []
    assert said == (
        f"warning: {path}: allow-provider ignored: a project's file is not trusted before you "
        f"approve it: look at it and run variants trust '{checkout}', "
        "or use --variant-allow-provider\n"
    )
    answer("y\n")
    done = variants("trust")
    assert done.code == 0
    assert done.out == f'{path}:\n    allow-provider = ["acme"]\n    prefer = ["acme"]\n\n'
    assert f"Approved {path}" in done.err
    assert allowed() == (["acme"], "")
    path.write_text(FILE.replace("acme", "evil"))
    providers, said = allowed()
    assert providers == []
    assert "it has changed since you approved it" in said
    assert variants("trust", "--yes", checkout).code == 0
    assert allowed() == (["evil"], "")


def test_what_is_granted_is_said_last(variants, checkout, answer):
    """However far up or right it stands in the file."""
    padding = "# harmless\n" * 5000
    (checkout / "variants.toml").write_text(
        f"prefer = ['a']{' ' * 5000}\nallow-provider = ['acme', \"ev\\u0069l\"]\n"
        f"plugin-sandbox = 'off'\n{padding}"
    )
    answer("n\n")
    lines = variants("trust", checkout).err.splitlines()
    assert lines[:4] == [
        "With the approval these settings apply:",
        "    allow-provider: 'acme'",
        "    allow-provider: 'evil'",
        "    plugin-sandbox: 'off'",
    ]
    (checkout / "variants.toml").write_text("prefer = ['a']")
    assert variants("trust", checkout).err.startswith("Nothing needs approval.\n")


@pytest.mark.parametrize("given", ["n\n", "\n", ""])
def test_not_confirmed(variants, checkout, allowed, answer, data, given):
    answer(given)
    done = variants("trust", checkout)
    assert done.code == 1
    assert "is not approved (--yes approves without asking)" in done.err
    assert not data.exists()
    assert allowed()[0] == []


def test_revoke(variants, checkout, allowed):
    variants("trust", "--yes", checkout)
    assert allowed()[0] == ["acme"]
    done = variants("trust", "--revoke", checkout)
    assert done == (0, "", f"Revoked {checkout / 'variants.toml'}\n")
    assert allowed()[0] == []
    done = variants("trust", "--revoke", checkout)
    assert done == (1, "", f"error: {checkout / 'variants.toml'} is not approved\n")


def test_list(variants, checkout):
    path = checkout / "variants.toml"
    assert variants("trust", "--list") == (0, "", "")
    variants("trust", "--yes", checkout)
    assert variants("trust", "--list").out == f"{path}  approved\n"
    path.write_text("")
    assert variants("trust", "--list").out == f"{path}  changed\n"
    path.write_text("broken")
    assert variants("trust", "--list").out == f"{path}  changed\n"
    path.unlink()
    assert variants("trust", "--list").out == f"{path}  missing\n"


def test_platform_file_is_shown_and_covered(variants, checkout):
    (checkout / "variants.toml").write_text('platform = "machine.toml"\n')
    machine = checkout / "machine.toml"
    machine.write_text("# one\n")
    done = variants("trust", "--yes", checkout)
    assert done.out.endswith(f"{machine}:\n    # one\n\n")
    assert variants("trust", "--list").out.endswith("  approved\n")
    machine.write_text("# two\n")
    assert variants("trust", "--list").out.endswith("  changed\n")


def test_control_characters_are_shown(variants, checkout):
    """What is approved is what is seen."""
    (checkout / "variants.toml").write_bytes(
        b'allow-provider = "evil" #\x7f\x08\x08\rprefer = "a"\n# \xe2\x80\xae\t\xc3\xa4\n'
    )
    done = variants("trust", "--yes", checkout)
    # TOML has no such characters, so nothing is approved, and nothing unprintable is said.
    assert done.code == 1
    assert done.err.strip().isprintable()
    (checkout / "variants.toml").write_text("# \u202e\t\u00e4\n", "utf-8")
    done = variants("trust", "--yes", checkout)
    assert "    # \\u202e\\t\u00e4\n" in done.out


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("prefers = 1", "prefers: unknown key"),
        ("allow-provider = ['-r x']", "'-r' is not a requirement"),
        ("platform = 'missing.toml'", "missing.toml cannot be read: No such file"),
        ("x =", "not valid TOML"),
    ],
)
def test_broken_files_are_not_approved(variants, checkout, data, text, problem):
    (checkout / "variants.toml").write_text(text)
    done = variants("trust", "--yes", checkout)
    assert done.code == 1
    assert problem in done.err
    assert not data.exists()


@pytest.mark.parametrize(
    "options",
    [("--list", "--revoke"), ("--list", "x"), ("--yes", "--revoke")],
)
def test_usage(variants, options):
    assert variants("trust", *options).code == 2


def test_files_that_are_none(variants, tmp_path):
    done = variants("trust", tmp_path)
    assert done.code == 1
    assert done.err.startswith(f"error: {tmp_path / 'variants.toml'}: cannot be read: No such file")
    if os.name != "nt":
        (tmp_path / "variants.toml").symlink_to("/dev/zero")
        assert "cannot be read: not a regular file" in variants("trust", tmp_path).err
