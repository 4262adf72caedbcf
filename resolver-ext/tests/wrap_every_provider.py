"""A pytest plugin that wraps every provider that a resolvelib resolution is given.

For test suites that know nothing of this project. `WRAP_MODE` says how much of the wrapper their
candidates go through: `told` says that there are no variants, `unknowing` that there may be.
"""

import os

import pytest
from resolvelib import BaseReporter
from resolvelib.resolvers import Resolution

from pep_variants.errors import MetadataError
from pep_variants.model.platform import Platform
from resolvelib_variants import TransparentProvider

MODE = os.environ["WRAP_MODE"]
wrapped = 0


class NoFiles:
    """Candidates of any kind, none of which is a file."""

    def version(self, candidate):
        return repr(candidate)

    def filename(self, candidate):
        return None

    def source(self, candidate):
        raise AssertionError("there is no file")

    def metadata(self, project, candidate):
        raise MetadataError("", "", "there is none")

    def has_variants(self, identifier):
        return MODE == "unknowing"

    def project(self, identifier):
        return str(identifier)

    def dependencies(self, candidate, reduce):
        return None


@pytest.fixture
def reporter():
    """What resolvelib's own conftest has, which its source distributions leave out."""
    return BaseReporter()


def pytest_configure(config):
    original = Resolution.__init__

    def wrapping(self, provider, *args, **kwargs):
        global wrapped
        wrapped += 1
        provider = TransparentProvider(provider, NoFiles(), platform=lambda metadata: Platform())
        original(self, provider, *args, **kwargs)

    Resolution.__init__ = wrapping


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"{wrapped} providers wrapped ({MODE})")
