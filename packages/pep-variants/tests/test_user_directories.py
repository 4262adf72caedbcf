"""The user's directories are those of platformdirs, which is asked only where it is needed."""

import subprocess
import sys

import platformdirs
import pytest

from pep_variants import user_directories

VALUES = (
    None,
    "",
    "/home/me",
    "/home/me/",
    "/",
    "//",
    "//a",
    "/a:/b",
    "relative",
    "~",
    " /a",
    "/ü b",
)


@pytest.mark.parametrize("home", ["/home/me", "/home/me/", "/", "//", "///a/", "/ü b"])
@pytest.mark.parametrize("value", VALUES)
def test_same_as_platformdirs(monkeypatch, home, value):
    monkeypatch.setenv("HOME", home)
    for variable in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CONFIG_DIRS"):
        if value is None:
            monkeypatch.delenv(variable, raising=False)
        else:
            monkeypatch.setenv(variable, value)
    check()


@pytest.mark.skipif(sys.platform == "win32", reason="asks Windows")
@pytest.mark.parametrize("home", [None, "", "relative", "~"])
def test_without_a_home(monkeypatch, home):
    if home is None:
        monkeypatch.delenv("HOME", raising=False)
    else:
        monkeypatch.setenv("HOME", home)
    check()


def test_android(monkeypatch):
    monkeypatch.setenv("ANDROID_DATA", "/data")
    monkeypatch.setenv("ANDROID_ROOT", "/system")
    check()


def check():
    assert user_directories.user_cache() == platformdirs.user_cache_path(
        "variants", appauthor=False
    )
    assert user_directories.user_config() == platformdirs.user_config_path(
        "variants", appauthor=False, roaming=True
    )
    assert user_directories.user_data() == platformdirs.user_data_path("variants", appauthor=False)
    assert user_directories.system_config() == platformdirs.site_config_path(
        "variants", appauthor=False
    )


@pytest.mark.skipif(sys.platform != "linux", reason="platformdirs knows the others")
def test_settings_are_found_without_platformdirs():
    code = (
        "import sys; from pep_variants.settings.loader import load_preferences\n"
        "load_preferences({}, {}, warn=print); print({'platformdirs', 'tempfile'} & {*sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"HOME": "/nowhere"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "set()\n"
