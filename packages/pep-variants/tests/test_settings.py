import json
import os
import re
import subprocess
import sys

import pytest

from pep_variants import directories
from pep_variants.choose.options import OPTIONS
from pep_variants.choose.preferences import (
    PRIORITIES,
    Preferences,
    configuration_tree,
    read_configuration,
)
from pep_variants.detect.machines import names_file
from pep_variants.errors import PreferenceError
from pep_variants.limits import SETTINGS_BYTES
from pep_variants.model.property import Selector
from pep_variants.settings.loader import load_preferences, load_settings
from pep_variants.settings.places import Place, Role, any_file, places
from pep_variants.settings.trust import Approvals, approval_digest, covered_files

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
        monkeypatch.setattr("pep_variants.ownership._ROOT", -1)
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
    if never and state == "approved":
        reason = "a project does not decide where code comes from"
    assert reason in warning


def test_the_rest_of_an_unapproved_file_counts_and_one_line_says_what_does_not(files, load):
    expected = everything_of(Role.PROJECT, files)
    found, (warning,) = load()
    allowed = {"use_variants", "forced", "prefer", "exclude", "before_version", "coherent"}
    allowed |= {*PRIORITIES}
    assert found == Preferences(**{name: getattr(expected, name) for name in allowed})
    ignored = ", ".join(option.key for option in OPTIONS if not option.narrows)
    assert f": {ignored} ignored: " in warning


@pytest.mark.parametrize("role", [Role.ENVIRONMENT, Role.USER, Role.SYSTEM])
def test_all_of_a_private_file_counts(role, files, load):
    assert load() == (Preferences(), [])
    expected = everything_of(role, files)
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
    found, _ = load()
    assert found.coherent == ("project",)
    assert found.prefer == (Selector("environment"),)


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


def test_origins(files):
    files[Role.USER].write_text("prefer = 'user'\nallow-provider = 'p'\ncoherent = 'a'")
    settings = load_settings(
        {"variant-prefer": ["x"]},
        {"VARIANTS_COHERENT": "x"},
        warn=pytest.fail,
        candidates=[Place(files[Role.USER], Role.USER)],
    )
    assert settings.origins == {
        "prefer": "--variant-prefer",
        "coherent": "VARIANTS_COHERENT",
        "allow_providers": str(files[Role.USER]),
    }


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


def test_approval_is_forgotten_when_the_file_changes(files, load, approve):
    path = files[Role.PROJECT]
    everything_of(Role.PROJECT, files)
    approve(path)
    before, (warning,) = load()
    assert before.allow_providers
    assert ": catalog, catalog-mirror ignored: " in warning
    path.write_text(path.read_text() + "# changed")
    found, (warning,) = load()
    assert found.allow_providers == ()
    assert "allow-provider" in warning
    remedy = f"look at it and run variants trust {path.parent}"
    assert f"it has changed since you approved it: {remedy}" in warning


def test_approval_is_forgotten_when_the_platform_file_changes(files, load, approve):
    path = files[Role.PROJECT]
    path.write_text("platform = 'machine.toml'")
    machine = path.parent / "machine.toml"
    machine.write_text("")
    approve(path)
    assert load()[0].platform_file == str(machine)
    machine.write_text("# changed")
    assert load()[0].platform_file is None
    machine.unlink()
    found, (warning,) = load()
    assert found.platform_file is None
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
@pytest.mark.parametrize("role", [Role.PROJECT, Role.USER])
@pytest.mark.parametrize("kind", ["device", "pipe", "directory", "large", "loop"])
def test_file_that_is_no_file(kind, role, files, load):
    path = files[role]
    if kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(path)
    else:
        path.write_bytes(b"#" * (SETTINGS_BYTES + 1))
    if role is not Role.PROJECT:
        with pytest.raises(PreferenceError, match=re.escape(f"{path}: cannot be read: ")):
            load()
        return
    found, (warning,) = load()
    assert found == Preferences()
    assert warning.startswith(f"{path}: cannot be read: ")


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


SCRIPT = """
import json, os, sys
from pep_variants.settings.loader import load_preferences
warnings = []
found = load_preferences({}, os.environ, warn=warnings.append)
print(json.dumps([[item.namespace for item in found.prefer], found.coherent, warnings]))
"""


@pytest.mark.parametrize(
    ("flags", "prefer", "coherent", "warnings"),
    [(["-E"], [], ["project"], 1), (["-I"], [], [], 0)],
)
def test_flags_of_python(flags, prefer, coherent, warnings, tmp_path):
    (tmp_path / "variants.toml").write_text("coherent = 'project'\nallow-provider = 'p'")
    nowhere = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"), str(tmp_path / "none"))
    done = subprocess.run(
        [sys.executable, *flags, "-c", SCRIPT],
        env={**os.environ, **nowhere, "VARIANTS_PREFER": "variable"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    assert (found[0], found[1], len(found[2])) == (prefer, coherent, warnings)


def test_whether_there_is_any_file(tmp_path, monkeypatch):
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "none"))
    monkeypatch.chdir(tmp_path)
    assert not any_file()
    (tmp_path / "variants.toml").write_text("")
    assert any_file()


def test_places(tmp_path):
    found = places(tmp_path / "cwd", str(tmp_path / "venv"))
    assert [place.role for place in found] == list(ROLES)
    assert found[0].path == tmp_path / "cwd" / "variants.toml"
    assert found[1].path == tmp_path / "venv" / "variants.toml"
    assert {place.path.name for place in found} == {"variants.toml"}
    assert places(prefix="x", prefix_is_project=True)[1].role is Role.PROJECT


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
