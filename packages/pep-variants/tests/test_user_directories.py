import os

import pytest

from pep_variants import directories
from pep_variants.choose.preferences import Preferences
from pep_variants.settings.loader import load_preferences


@pytest.mark.skipif(os.name == "nt", reason="Windows has no passwd")
def test_a_user_without_a_home_directory(monkeypatch):
    """V8: a container with --user 12345 has neither HOME nor an entry in passwd."""
    import pwd

    def unknown(uid):
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    for find in ("user_cache", "user_config", "user_data"):
        path = getattr(directories, find)()
        assert path.is_absolute()
        assert not path.exists()
    assert load_preferences({}, {}, warn=pytest.fail) == Preferences()
