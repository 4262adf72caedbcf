"""Every error of the uv shim. Catch `UvVariantsError` for all of them.

Messages name the URL, without credentials, and the value, and say what to do.
"""

from __future__ import annotations


class UvVariantsError(Exception):
    """Base of all errors of this package."""


class InvalidKey(UvVariantsError):
    """A platform key that no `encode` has written, or that names a platform nobody knows."""


class UpstreamError(UvVariantsError):
    """An upstream index that cannot be reached, answers with an error, or breaks a limit.

    Attributes:
        status: HTTP status that the shim answers with: 502, or 504 for one that is too slow.
    """

    def __init__(self, message: str, status: int = 502) -> None:
        self.status = status
        super().__init__(message)


class UnusableFile(UvVariantsError):
    """An upstream file that is not what its index said, or cannot be served as it has to be."""


class InvalidSetting(UvVariantsError):
    """A setting of the shim that makes no sense."""


class NoSuchFile(UvVariantsError):
    """A project, file or index that is not there."""


class UvNotFound(UvVariantsError):
    """There is no uv to run."""


class ShimFailed(UvVariantsError):
    """The index shim could not be started, or cannot be reached."""
