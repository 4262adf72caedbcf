import json
import os
import re
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from pep_variants import _directories as directories
from pep_variants._choose.preferences import (
    PRIORITIES,
    Preferences,
    configuration_tree,
    read_configuration,
)
from pep_variants._detect.machines import names_file
from pep_variants._model.property import Selector
from pep_variants._places import Place, Role, places
from pep_variants._settings.loader import load_preferences, load_settings
from pep_variants._settings.trust import Approvals, approval_digest, covered_files
from pep_variants.errors import PreferenceError
from pep_variants.limits import SETTINGS_BYTES
from pep_variants.options import OPTIONS, any_file

posix = pytest.mark.skipif(os.name == "nt", reason="POSIX modes and links")

ROLES = (Role.PROJECT, Role.ENVIRONMENT, Role.USER, Role.SYSTEM)

NARROWING = {
    "no-variants": "true",
    "variant": "['torch=cu128']",
    "prefer": "['a']",
    "exclude": "['a']",
    "coherent": "['a']",
    "before-version": "['a']",
    "namespace_priorities": "['a']",
    "feature_priorities": "{a = ['b']}",
    "property_priorities": "{a = {b = ['c']}}",
}
"""Keys that a project's file may set before it is approved, with a value."""
KEYS = {
    **NARROWING,
    "platform": "'machine.toml'",
    "enable": "['a']",
    "allow-provider": "['p @ https://index.example/p-1-py3-none-any.whl']",
    "on-plugin-error": "'skip'",
    "plugin-variable": "['SECRET']",
    "plugin-sandbox": "'off'",
    "catalog": '"entries"',
    "catalog-mirror": '["https://a.example=https://b.example"]',
    "allow-missing-sources": "true",
    "switch": "true",
}


@pytest.fixture(autouse=True)
def approvals(tmp_path, monkeypatch):
    """The user's approvals, in a directory of the test's."""
    monkeypatch.setattr(directories, "user_data", lambda: tmp_path / "data")
    return Approvals()


@pytest.fixture
def files(tmp_path):
    """Paths of the four files by role; none exists."""
    paths = {}
    for role in ROLES:
        folder = tmp_path / role.name.lower()
        folder.mkdir(mode=0o755)
        paths[role] = folder / "variants.toml"
    return paths


@pytest.fixture
def load(files):
    """Load the preferences of *files*; returns them and the warnings."""

    def load(options=(), environ=(), **kwargs):
        warnings = []
        found = load_preferences(
            dict(options),
            dict(environ),
            warn=warnings.append,
            candidates=[Place(path, role) for role, path in files.items()],
            **kwargs,
        )
        for text in warnings:
            assert text.isprintable()
        return found, warnings

    return load


@pytest.fixture
def approve(approvals):
    def approve(path):
        data = path.read_bytes()
        tree = configuration_tree(data, str(path))
        approvals.add(path, approval_digest(covered_files(path, data, tree)))

    return approve


def everything_of(role, files):
    """Write all keys into the file of *role*; return what they mean together."""
    path = files[role]
    (path.parent / "machine.toml").write_text("")
    text = "\n".join(f"{key} = {value}" for key, value in KEYS.items())
    path.write_text(text)
    path.chmod(0o644)
    named = {
        "platform_file": str(path.parent / "machine.toml"),
        "catalog": str(path.parent / "entries"),
    }
    return Preferences(**{**vars(read_configuration(text, "x")), **named})


# Which key counts where.


def test_every_key_is_decided():
    assert set(KEYS) == {*(option.key for option in OPTIONS), *PRIORITIES}
    assert {option.key for option in OPTIONS if option.narrows} | {*PRIORITIES} == set(NARROWING)


@pytest.mark.parametrize("key", ["prefer", "platform", "catalog", "allow-provider"])
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("state", ["private", "approved", "changeable", "of another user"])
def test_key_in_place(key, role, state, files, load, approve, monkeypatch):
    if os.name == "nt" and state in ("changeable", "of another user"):
        pytest.skip("POSIX owners and modes")
    path = files[role]
    (path.parent / "machine.toml").write_text("")
    path.write_text(f"{key} = {KEYS[key]}\n")
    path.chmod(0o666 if state == "changeable" else 0o644)
    if state == "approved":
        approve(path)
    if state == "of another user":
        monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 4711)
        monkeypatch.setattr("pep_variants._ownership._ROOT", -1)
    believed = state == "approved" if role is Role.PROJECT else state in ("private", "approved")
    never = role is Role.PROJECT and key == "catalog"
    found, warnings = load()
    if (believed and not never) or key in NARROWING:
        expected = read_configuration(path.read_bytes(), "x")
        if key == "platform":
            expected = Preferences(platform_file=str(path.parent / "machine.toml"))
        if key == "catalog":
            expected = Preferences(catalog=str(path.parent / "entries"))
        assert (found, warnings) == (expected, [])
        return
    assert found == Preferences()
    (warning,) = warnings
    option = next(option for option in OPTIONS if option.key == key)
    assert warning.startswith(f"{path}: {key} ignored: ")
    assert warning.endswith(f", or use --{option.name}")
    reason = {
        "changeable": f"{path} can be changed by other users: run chmod go-w {path}",
        "of another user": f"{path} belongs to another user",
    }.get(state, "a project's file is not trusted before you approve it")
    if role is Role.PROJECT:
        reason = f"run variants trust {path.parent}"
    if never and role is Role.PROJECT:
        reason = "a project does not decide where code comes from"
    assert reason in warning


def test_every_key_counts_in_a_private_file_and_the_narrowing_ones_in_an_unapproved(files, load):
    assert load() == (Preferences(), [])
    expected = everything_of(Role.PROJECT, files)
    found, (never, warning) = load()
    allowed = {"use_variants", "forced", "prefer", "exclude", "before_version", "coherent"}
    allowed |= {*PRIORITIES}
    assert found == Preferences(**{name: getattr(expected, name) for name in allowed})
    personal = [option.key for option in OPTIONS if option.personal]
    ignored = [option.key for option in OPTIONS if not option.narrows]
    assert f": {', '.join(personal)} ignored: a project does not decide" in never
    assert f": {', '.join(key for key in ignored if key not in personal)} ignored: " in warning
    files[Role.PROJECT].unlink()
    expected = everything_of(Role.USER, files)
    assert load() == (expected, [])


# Merging.


def test_keys_count_from_the_most_important_place(files, load):
    names = [role.name.lower() for role in ROLES]
    for number, role in enumerate(ROLES):
        keys = ("coherent", "prefer", "variant", "namespace_priorities")[: number + 1]
        values = {"variant": f"a={names[number]}"}
        lines = [f"{key} = ['{values.get(key, names[number])}']" for key in keys]
        files[role].write_text("\n".join(lines))
    found, warnings = load({"variant-coherent": ["option"]}, {"VARIANTS_PREFER": "variable"})
    assert warnings == []
    assert found == Preferences(
        coherent=("option",),
        prefer=(Selector("variable"),),
        forced={"a": "user"},
        namespace_priorities=("system",),
    )
    candidates = [Place(path, role) for role, path in files.items()]
    options = {"variant-prefer": ["option"]}
    found = load_settings(options, {}, warn=pytest.fail, candidates=candidates)
    assert found.origins["coherent"] == str(files[Role.PROJECT])
    assert found.origins["prefer"] == "--variant-prefer"
    found = load_settings({}, {"VARIANTS_PREFER": "x"}, warn=pytest.fail, candidates=candidates)
    assert found.origins["prefer"] == "VARIANTS_PREFER"
    assert found.preferences.coherent == ("project",)


def test_an_unapproved_file_does_not_undo_what_was_narrowed(files, load, approve):
    files[Role.USER].write_text("exclude = ['user']\nno-variants = true\nvariant = ['a=', 'b=x']")
    files[Role.PROJECT].write_text(
        "exclude = ['project', 'user']\nno-variants = false\nvariant = ['A=other', 'c=other']"
    )
    found, warnings = load()
    assert found.forced == {"a": "", "b": "x", "c": "other"}
    assert found.exclude == (Selector("user"), Selector("project"))
    assert not found.use_variants
    assert warnings == []
    approve(files[Role.PROJECT])
    found, _ = load()
    assert found.exclude == (Selector("project"), Selector("user"))
    assert found.use_variants
    assert found.forced == {"a": "other", "c": "other"}


def test_what_a_machine_is_relative_to(files, load, tmp_path):
    files[Role.USER].write_text("platform = 'machines/one.toml'")
    expected = str(tmp_path / "user" / "machines" / "one.toml")
    assert load()[0].platform_file == expected
    files[Role.USER].write_text(f"platform = {json.dumps(str(tmp_path / 'two.toml'))}")
    assert load()[0].platform_file == str(tmp_path / "two.toml")
    # What is typed is relative to where it is typed.
    assert load({"variant-platform": "three.toml"})[0].platform_file == "three.toml"
    # The word takes back what a less important place says.
    assert load({"variant-platform": "native"})[0].platform_file is None
    assert not names_file("native")
    files[Role.USER].write_text("platform = 'h100-zen4'")
    assert load()[0].platform_file == "h100-zen4"


# Approvals.


def test_approval_is_forgotten_when_the_file_or_its_machine_changes(files, load, approve):
    path = files[Role.PROJECT]
    machine = path.parent / "machine.toml"
    expected = everything_of(Role.PROJECT, files)
    nothing = Preferences()
    for file in (path, machine):
        approve(path)
        before, (warning,) = load()
        assert ": catalog, catalog-mirror ignored: " in warning
        assert before == replace(
            expected, catalog=nothing.catalog, catalog_mirrors=nothing.catalog_mirrors
        )
        file.write_text(file.read_text() + "# changed")
        found, (_, warning) = load()
        assert (found.allow_providers, found.platform_file) == ((), None)
        remedy = f"look at it and run variants trust {path.parent}"
        assert f"it has changed since you approved it: {remedy}" in warning
    approve(path)
    machine.unlink()
    _, (_, warning) = load()
    assert "it has changed since you approved it" in warning


@posix
def test_approvals_that_others_can_write(files, load, approve, approvals):
    files[Role.PROJECT].write_text("allow-provider = 'p'")
    approve(files[Role.PROJECT])
    assert load()[0].allow_providers == ("p",)
    approvals.root.chmod(0o777)
    found, (warning,) = load()
    assert found.allow_providers == ()
    assert f"{approvals.root} can be changed by other users" in warning


@posix
def test_files_that_an_unapproved_file_names_are_not_opened(files, load):
    pipe = files[Role.PROJECT].parent / "pipe"
    os.mkfifo(pipe)
    for named in (str(pipe), "/dev/zero", "missing"):
        files[Role.PROJECT].write_text(f"platform = '{named}'\nprefer = 'a'")
        found, warnings = load()
        assert found == Preferences(prefer=(Selector("a"),))
        assert len(warnings) == 1


# Files that are broken.

BROKEN = ["prefer = 5", "x = ", "unknown = 1", f"a = {'[' * 100_000}", f"{'a.' * 50_000}a = 1"]


@pytest.mark.parametrize("text", BROKEN)
def test_broken_file(text, files, load, tmp_path):
    """One of the user's is an error; a checkout must not keep commands from working."""
    files[Role.USER].write_text(text)
    with pytest.raises(PreferenceError, match=re.escape(f"{files[Role.USER]}: ")):
        load()
    files[Role.USER].write_text("prefer = 'user'")
    folder = tmp_path / "\x1b]0;x\x07"
    folder.mkdir()
    files[Role.PROJECT] = folder / "variants.toml"
    files[Role.PROJECT].write_text(text)
    found, (warning,) = load()
    assert found == Preferences(prefer=(Selector("user"),))
    assert warning.startswith(f"{tmp_path}/?]0;x?/variants.toml: ")
    assert warning.endswith("; the file is left out")
    assert len(warning) < 600


@posix
def test_file_that_cannot_be_read(files, load):
    for role in (Role.PROJECT, Role.USER):
        files[role].symlink_to("/dev/zero")
    with pytest.raises(PreferenceError, match=re.escape(f"{files[Role.USER]}: cannot be read: ")):
        load()
    files[Role.USER].unlink()
    files[Role.USER].write_bytes(b"#" * (SETTINGS_BYTES + 1))
    with pytest.raises(PreferenceError, match="cannot be read: larger than"):
        load()
    files[Role.USER].unlink()
    found, (warning,) = load()
    assert found == Preferences()
    assert warning.startswith(f"{files[Role.PROJECT]}: cannot be read: not a regular file")


# Which places are consulted.


def test_isolated_leaves_out_variables_and_the_files_of_project_and_user(files, load):
    """As ``pip --isolated`` does; the virtual environment's and the system's files count."""
    for role in ROLES:
        files[role].write_text(f"prefer = '{role.name.lower()}'\nplugin-variable = 'X'")
    variables = {"VARIANTS_PREFER": "variable", "VARIANTS_NO_VARIANTS": "maybe"}
    found, warnings = load({}, variables, isolated=True)
    assert found == Preferences(prefer=(Selector("environment"),), plugin_variables=("X",))
    assert warnings == []
    found, _ = load({"variant-prefer": ["option"]}, variables, isolated=True)
    assert found.prefer == (Selector("option"),)


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """No file counts but that of the working directory, in which there is none yet."""
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "none"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("isolated", "coherent", "number"), [(False, ("project",), 1), (True, (), 0)]
)
@pytest.mark.usefixtures("nowhere")
def test_flags_of_python(isolated, coherent, number, tmp_path, monkeypatch):
    """With -E variables do not count, with -I the files of the project and user neither."""
    (tmp_path / "variants.toml").write_text("coherent = 'project'\nallow-provider = 'p'")
    flags = {name: getattr(sys.flags, name) for name in dir(sys.flags)}
    flags |= {"ignore_environment": 1, "isolated": int(isolated)}
    monkeypatch.setattr(sys, "flags", SimpleNamespace(**flags))
    warnings = []
    found = load_preferences({}, {"VARIANTS_PREFER": "variable"}, warn=warnings.append)
    assert (found, len(warnings)) == (Preferences(coherent=coherent), number)


@pytest.mark.usefixtures("nowhere")
def test_whether_there_is_any_file(tmp_path):
    assert not any_file()
    (tmp_path / "variants.toml").write_text("")
    assert any_file()
    found = places(tmp_path, str(tmp_path / "venv"))
    assert [(place.role, place.path) for place in found[:2]] == [
        (Role.PROJECT, tmp_path / "variants.toml"),
        (Role.ENVIRONMENT, tmp_path / "venv" / "variants.toml"),
    ]
    assert [place.role for place in found] == list(ROLES)
    assert places(prefix="x", prefix_is_project=True)[1].role is Role.PROJECT


@pytest.mark.parametrize(
    "mark", ["tool/uv-receipt.toml", "tool/pipx_metadata.json", "CACHEDIR.TAG"]
)
def test_the_environment_of_a_tool(tmp_path, monkeypatch, mark):
    """The activated one counts in place of it, but not in place of a pip's own."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "tool"))
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "active"))
    (tmp_path / "tool").mkdir()
    assert places()[1].path == tmp_path / "tool" / "variants.toml"
    (tmp_path / mark).touch()
    assert places()[1].path == tmp_path / "active" / "variants.toml"


def test_working_directory_that_is_another_place(tmp_path):
    """Its file counts once, as what it is for every other directory."""
    path = tmp_path / "variants.toml"
    path.write_text("allow-provider = 'p'")
    for role in (Role.ENVIRONMENT, Role.USER):
        candidates = [Place(path, Role.PROJECT), Place(path, role)]
        found = load_preferences({}, {}, warn=pytest.fail, candidates=candidates)
        assert found.allow_providers == ("p",)


@posix
def test_working_directory_that_is_gone(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    candidates = places(prefix=str(tmp_path))[:2]
    assert load_preferences({}, {}, warn=pytest.fail, candidates=candidates) == Preferences()


def test_a_user_without_a_home_directory(monkeypatch):
    """V8: a container with --user 12345 has neither HOME nor an entry in passwd."""
    pwd = pytest.importorskip("pwd")

    def unknown(uid):
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    monkeypatch.undo()
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    for find in ("user_cache", "user_config", "user_data"):
        path = getattr(directories, find)()
        assert path.is_absolute()
        assert not path.exists()
    assert load_preferences({}, {}, warn=pytest.fail) == Preferences()
