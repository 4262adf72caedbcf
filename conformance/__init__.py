"""The conformance corpus for wheel variants, and what runs it; see README.md beside this file."""

import sys
from pathlib import Path

FOLDER = Path(__file__).parent

# Servers, small wheels and environments are those of the tests.
_SUPPORT = str(FOLDER.parent / "integration-tests")
if _SUPPORT not in sys.path:
    sys.path.append(_SUPPORT)
