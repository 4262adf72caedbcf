"""Settings of S3 in the files of the AWS command line, which obstore does not read."""

from __future__ import annotations

import configparser
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .store import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_TTL = timedelta(minutes=10)
"""How long credentials of boto3 are kept; it renews them by itself."""


def s3_configuration(environ: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return configuration, and further arguments, of an `obstore.store.S3Store`.

    obstore reads ``AWS_...`` variables, and asks containers and machines for their role. This
    adds the profile (``AWS_PROFILE``) in ``~/.aws``: its keys, or whatever else boto3 knows.

    Raises:
        StoreError: the profile needs boto3, which is missing, or has no credentials.
    """
    if environ.get("AWS_ACCESS_KEY_ID") or environ.get("AWS_SKIP_SIGNATURE"):
        return {}, {}
    if environ.get("AWS_WEB_IDENTITY_TOKEN_FILE") and environ.get("AWS_ROLE_ARN"):
        return {}, {}
    home = Path(environ.get("HOME") or environ.get("USERPROFILE") or "~").expanduser()
    named = environ.get("AWS_PROFILE") or environ.get("AWS_DEFAULT_PROFILE")
    profile = named or "default"
    found = {
        **_section(
            Path(environ.get("AWS_CONFIG_FILE") or home / ".aws" / "config"),
            "default" if profile == "default" else f"profile {profile}",
        ),
        **_section(
            Path(environ.get("AWS_SHARED_CREDENTIALS_FILE") or home / ".aws" / "credentials"),
            profile,
        ),
    }
    config: dict[str, Any] = {}
    if "region" in found and not (environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")):
        config["region"] = found["region"]
    if found.get("aws_access_key_id") and found.get("aws_secret_access_key"):
        config["access_key_id"] = found["aws_access_key_id"]
        config["secret_access_key"] = found["aws_secret_access_key"]
        if found.get("aws_session_token"):
            config["session_token"] = found["aws_session_token"]
        return config, {}
    if not named and not any(key.startswith(("sso_", "role_", "credential_")) for key in found):
        return config, {}  # the role of the machine
    return config, {"credential_provider": _of_boto3(profile)}


def _of_boto3(profile: str) -> Callable[[], dict[str, Any]]:
    """Return a function that returns the current credentials of *profile*."""
    try:
        import boto3  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        raise StoreError(
            f"the AWS profile {profile!r} has no access key of its own: pip install boto3, or "
            "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        ) from None
    try:
        credentials = boto3.Session(profile_name=profile).get_credentials()
    except Exception as error:
        raise StoreError(f"the AWS profile {profile!r}: {str(error)[:200]}") from None
    if credentials is None:
        raise StoreError(f"the AWS profile {profile!r} has no credentials")

    def current() -> dict[str, Any]:
        frozen = credentials.get_frozen_credentials()
        return {
            "access_key_id": frozen.access_key,
            "secret_access_key": frozen.secret_key,
            "token": frozen.token,
            "expires_at": datetime.now(timezone.utc) + _TTL,
        }

    return current


def _section(path: Path, name: str) -> dict[str, str]:
    """Return the keys under *name* in the INI file at *path*; none if it is not there."""
    parser = configparser.RawConfigParser()
    try:
        parser.read(path, encoding="utf-8")
    except (OSError, ValueError, configparser.Error):
        return {}
    return dict(parser[name]) if parser.has_section(name) else {}
