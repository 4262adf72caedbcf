"""Options of `variants publish` that say where to upload, and with which credentials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..publishing.destination import UploadOptions

_OPTIONS = (
    click.option(
        "--repository-url", metavar="URL",
        help="Upload URL of the index; also TWINE_REPOSITORY_URL or UV_PUBLISH_URL.",
    ),
    click.option(
        "-r", "--repository", metavar="NAME",
        help="Name of the index: pypi, testpypi, or a section of .pypirc.",
    ),
    click.option(
        "--to", metavar="PLACE",
        help="Publish to storage of static files: a directory, s3://BUCKET/PREFIX, gs://..., "
        "az://..., github-pages:DIR, or github-releases:OWNER/REPOSITORY@TAG with --pages.",
    ),
    click.option(
        "--pages", metavar="PLACE",
        help="Where the pages go that list the files of github-releases:..., as --to.",
    ),
    click.option("--config-file", metavar="FILE", help="Configuration file. Default: ~/.pypirc."),
    click.option(
        "--index-url", metavar="URL",
        help="Base URL of the index's pages, which is derived from the upload URL otherwise; also "
        "UV_PUBLISH_CHECK_URL.",
    ),
    click.option("-u", "--username", metavar="NAME", help="User name; also TWINE_USERNAME."),
    click.option(
        "-p", "--password", metavar="PASSWORD",
        help="Password. Better in TWINE_PASSWORD, .pypirc, netrc or keyring.",
    ),
    click.option("--token", metavar="TOKEN", help="API token. Better in UV_PUBLISH_TOKEN."),
    click.option(
        "--trusted-publishing", type=click.Choice(["auto", "always", "never"]), default="auto",
        show_default=True, help="Use the identity of a CI job in place of a token.",
    ),
    click.option("--cert", metavar="FILE", help="Bundle of certificate authorities."),
    click.option("--client-cert", metavar="FILE", help="Client certificate with its key."),
    click.option(
        "--retries", type=click.IntRange(0, 100), default=6, show_default=True,
        help="How often a request is sent again after a failure that may pass.",
    ),
)  # fmt: skip


def publish_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to *command*."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def upload_options(values: dict[str, Any]) -> UploadOptions:
    """Return the values of the options but ``--retries``."""
    from ..publishing.destination import UploadOptions

    return UploadOptions(**values)
