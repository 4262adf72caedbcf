"""TOML reading, from the standard library or, on Python 3.10, from tomli."""

import sys

if sys.version_info >= (3, 11):
    from tomllib import loads
else:
    from tomli import loads

__all__ = ["loads"]
