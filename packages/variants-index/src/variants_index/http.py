"""HTTP without a client: errors, credentials, proxies of the user."""

from ._errors import (
    PROXY_LOGIN,
    AccessDenied,
    BadResponse,
    InvalidPage,
    InvalidUrl,
    NotFound,
    PackageIndexError,
    TargetError,
    TimedOut,
    Unreachable,
    UntrustedServer,
    UnusableDistribution,
)
from ._http.credentials import Credentials, split_credentials
from ._http.user_proxies import PORTS, InvalidProxy, UserProxy, proxy_for, read

__all__ = [
    "PORTS", "PROXY_LOGIN", "AccessDenied", "BadResponse", "Credentials", "InvalidPage",
    "InvalidProxy", "InvalidUrl", "NotFound", "PackageIndexError", "TargetError", "TimedOut",
    "Unreachable", "UntrustedServer", "UnusableDistribution", "UserProxy",
    "proxy_for", "read", "split_credentials",
]  # fmt: skip
