"""`variants trust`: what is shown, asked, listed and revoked; what approvals do is the engine's."""

import io
import os
import sys

import pytest

from pep_variants import _directories as directories

FILE = 'allow-provider = ["acme"]\nprefer = ["acme"]\n'


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    """The user's directories, of this test alone."""
    monkeypatch.setattr(directories, "user_data", lambda: tmp_path / "data")
    for name in ("user_config", "system_config"):
        monkeypatch.setattr(directories, name, lambda: tmp_path / "none")
    for name in [name for name in os.environ if name.startswith("VARIANTS_")]:
        monkeypatch.delenv(name)
    return tmp_path / "data"


@pytest.fixture
def path(tmp_path, monkeypatch):
    """The file of a checkout, which is the working directory."""
    folder = tmp_path / "check out"
    folder.mkdir()
    (folder / "variants.toml").write_text(FILE)
    monkeypatch.chdir(folder)
    return folder / "variants.toml"


@pytest.fixture
def trust(variants, path, monkeypatch):
    """Run the command, and answer its question."""

    def trust(*arguments, answer=""):
        monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
        return variants("trust", *arguments)

    return trust


def test_approve(variants, trust, path):
    done = variants("detect", "--verbose")
    assert "allowed" not in done.out
    assert done.err == (
        f"warning: {path}: allow-provider ignored: a project's file is not trusted before you "
        f"approve it: look at it and run variants trust '{path.parent}', "
        "or use --variant-allow-provider\n"
    )
    done = trust(answer="y\n")
    assert done.code == 0
    assert done.out == f'{path}:\n    allow-provider = ["acme"]\n    prefer = ["acme"]\n\n'
    assert f"Approved {path}" in done.err
    done = variants("detect", "--verbose")
    assert ["allowed", "acme"] in [line.split()[:2] for line in done.out.splitlines()]
    assert done.err == ""


def test_what_no_approval_grants(variants, trust, path):
    """A project does not decide where code comes from: no line says that it would."""
    path.write_text(f"catalog = 'default'\ncatalog-mirror = ['https://a=https://b']\n{FILE}")
    why = "a project does not decide where code comes from"
    before = variants("detect").err.splitlines()
    assert before[0].startswith(f"warning: {path}: catalog, catalog-mirror ignored: {why}")
    assert before[1].startswith(f"warning: {path}: allow-provider ignored: ")
    assert trust("--yes").err.splitlines()[:-1] == [
        f"catalog does not apply: {why}",
        f"catalog-mirror does not apply: {why}",
        "With the approval these settings apply:",
        "    allow-provider: 'acme'",
    ]
    assert variants("detect").err.splitlines() == before[:1]


def test_what_is_granted_is_said_last(trust, path):
    """However far up or right it stands in the file."""
    path.write_text(
        f"prefer = ['a']{' ' * 5000}\nallow-provider = ['acme', \"ev\\u0069l\"]\n"
        "plugin-sandbox = 'off'\n" + "# harmless\n" * 5000
    )
    assert trust(answer="n\n").err.splitlines()[:4] == [
        "With the approval these settings apply:",
        "    allow-provider: 'acme'",
        "    allow-provider: 'evil'",
        "    plugin-sandbox: 'off'",
    ]
    path.write_text("prefer = ['a']")
    assert trust(path.parent).err.startswith("Nothing needs approval.\n")


@pytest.mark.parametrize("answer", ["n\n", "\n", ""])
def test_not_confirmed(trust, data, answer):
    done = trust(answer=answer)
    assert done.code == 1
    assert "is not approved (--yes approves without asking)" in done.err
    assert not data.exists()


def test_list_and_revoke(trust, path):
    assert trust("--list") == (0, "", "")
    for text, state in ((FILE, "approved"), ("", "changed"), ("broken", "changed")):
        if state == "approved":
            trust("--yes", path.parent)
        path.write_text(text)
        assert trust("--list").out == f"{path}  {state}\n"
    path.unlink()
    assert trust("--list").out == f"{path}  missing\n"
    assert trust("--revoke", path.parent) == (0, "", f"Revoked {path}\n")
    assert trust("--list") == (0, "", "")
    assert trust("--revoke", path.parent) == (1, "", f"error: {path} is not approved\n")


def test_platform_file_is_shown_and_covered(trust, path):
    path.write_text('platform = "machine.toml"\n')
    machine = path.with_name("machine.toml")
    machine.write_text("# one\n")
    assert trust("--yes").out.endswith(f"{machine}:\n    # one\n\n")
    assert trust("--list").out.endswith("  approved\n")
    machine.write_text("# two\n")
    assert trust("--list").out.endswith("  changed\n")


def test_control_characters_are_shown(trust, path):
    """What is approved is what is seen."""
    path.write_text("# \u202e\t\u00e4\n", "utf-8")
    assert "    # \\u202e\\t\u00e4\n" in trust("--yes").out


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("prefers = 1", "prefers: unknown key"),
        ("allow-provider = ['-r x']", "'-r' is not a requirement"),
        ("platform = 'missing.toml'", "missing.toml cannot be read: No such file"),
        ("allow-provider = 'evil' #\x7f\x08\x08\rprefer = 'a'", "not valid TOML"),
        (None, "cannot be read: No such file"),
        pytest.param(
            "/dev/zero",
            "cannot be read: not a regular file",
            marks=pytest.mark.skipif(os.name == "nt", reason="Windows has no such file"),
        ),
    ],
)
def test_broken_files_are_not_approved(trust, path, data, text, problem):
    path.unlink()
    if text == "/dev/zero":
        path.symlink_to(text)
    elif text is not None:
        path.write_bytes(text.encode())
    done = trust("--yes")
    assert done.code == 1
    assert problem in done.err
    assert done.err.startswith(f"error: {path}: ")
    assert done.err.strip().isprintable()
    assert not data.exists()


@pytest.mark.parametrize(
    "options", [("--list", "--revoke"), ("--list", "x"), ("--yes", "--revoke")]
)
def test_usage(variants, options):
    assert variants("trust", *options).code == 2
