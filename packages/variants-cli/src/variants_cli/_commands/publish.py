"""`variants publish`: uploads a release so that nothing is lost and nothing half done."""

from __future__ import annotations

import os
import sys
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pep_variants.preferences import Sources

from .._checks.directory import check_directory
from .._checks.finding import ERROR
from .._console import counted, fail, one_line, print_json, printable, warn
from .._publishing import transaction
from .._publishing.errors import install_command
from .._publishing.release_contents import read_releases
from .._publishing.stored_index import StoredIndex
from .._publishing.stores import open_store
from .arguments import json_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from variants_catalog.catalogs import Finding

    from .._publishing.release_contents import Release
    from .._publishing.transaction import Published, Target


@click.command(short_help="Upload wheels and metadata.")
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--repository-url", metavar="URL", envvar=["TWINE_REPOSITORY_URL", "UV_PUBLISH_URL"],
    help="Upload URL of the index; also TWINE_REPOSITORY_URL or UV_PUBLISH_URL.",
)  # fmt: skip
@click.option(
    "-r", "--repository", "repository_name", metavar="NAME", envvar="TWINE_REPOSITORY",
    help="Name of the index: pypi, testpypi, or one of .pypirc; also TWINE_REPOSITORY.",
)  # fmt: skip
@click.option(
    "--to", metavar="PLACE",
    help="Publish to storage of static files: a directory, s3://BUCKET/PREFIX, gs://... or "
    "az://...",
)  # fmt: skip
@click.option("--config-file", metavar="FILE", default="~/.pypirc", show_default=True)
@click.option(
    "--index-url", metavar="URL", envvar="UV_PUBLISH_CHECK_URL",
    help="Base URL of the index's pages, which is derived from the upload URL otherwise; also "
    "UV_PUBLISH_CHECK_URL.",
)  # fmt: skip
@click.option(
    "-u", "--username", metavar="NAME", envvar=["TWINE_USERNAME", "UV_PUBLISH_USERNAME"],
    help="User name; also TWINE_USERNAME or UV_PUBLISH_USERNAME.",
)  # fmt: skip
@click.option(
    "-p", "--password", metavar="TEXT",
    envvar=["TWINE_PASSWORD", "UV_PUBLISH_PASSWORD", "UV_PUBLISH_TOKEN"],
    help="Password or API token. Better in TWINE_PASSWORD, UV_PUBLISH_TOKEN, .pypirc, netrc or "
    "keyring.",
)  # fmt: skip
@click.option(
    "--cert", "cacert", metavar="FILE", envvar="TWINE_CERT",
    help="Bundle of certificate authorities; also TWINE_CERT.",
)  # fmt: skip
@click.option("--client-cert", metavar="FILE", help="Client certificate with its key.")
@click.option(
    "--without-metadata", is_flag=True,
    help="Do not upload *-variants.json: the index creates it, or installers read the wheels.",
)  # fmt: skip
@click.option(
    "--attestations/--no-attestations", default=True,
    help="Upload the attestations beside the files. Default: --attestations.",
)  # fmt: skip
@click.option(
    "--dry-run", is_flag=True,
    help="Compare with the index and show the uploads in their order.",
)  # fmt: skip
@json_option
def publish(
    directory: Path,
    without_metadata: bool,
    attestations: bool,
    dry_run: bool,
    as_json: bool,
    **options: Any,  # noqa: ANN401 - where to, and how
) -> None:
    """Upload the wheels, source distributions and metadata in a directory to an index.

    First the variant wheels, which installers ignore without metadata, then that, merged with
    what the index has, then the null variants, the non-variant wheels and the source
    distributions. So installers that read the index meanwhile do not find the version, or find
    the file that they will choose in the end. On storage of static files (--to) everything becomes
    visible at once.

    The directory is validated and compared with the index first. After a failure or a kill, the
    same command goes on from where it was: files that the index has already are not uploaded
    again. The pages of the index are validated afterwards.

    Example: variants publish dist --repository-url https://index.example/legacy/

    Example: variants publish dist --to s3://wheels.example.org/nightly
    """
    _refuse_faults(directory)
    releases = read_releases(directory, metadata=not without_metadata, attestations=attestations)
    if not releases:
        raise click.ClickException(f"{directory}: no distributions to publish")
    with closing(_target(directory, **options)) as target:
        done = transaction.publish(
            target,
            releases,
            lambda text: None if as_json else click.echo(printable(text)),
            dry=dry_run,
        )
        findings = [] if dry_run else transaction.verify(target, releases, done)
    if as_json:
        print_json(_tree(target, releases, done, None if dry_run else findings))
    elif not dry_run:
        _show(target, done, findings)
    if any(finding.severity == ERROR for finding in findings):
        sys.exit(1)


def _target(
    directory: Path,
    to: str | None,
    index_url: str | None,
    **options: Any,  # noqa: ANN401 - of twine
) -> Target:
    source = click.get_current_context().get_parameter_source
    typed = {
        name
        for name in ("to", "index_url", "repository_name", "repository_url")
        if source(name) is click.core.ParameterSource.COMMANDLINE
    }
    if (to is not None and len(typed) > 1) or {"repository_name", "repository_url"} <= typed:
        raise click.UsageError(
            "--to, --repository and --repository-url exclude each other; --index-url is of an "
            "upload API"
        )
    if to is not None:
        return _storage(directory, to)
    if "repository_name" in typed:
        options["repository_url"] = None
    if options["repository_name"] is None and options["repository_url"] is None:
        raise click.UsageError(
            "where to? Give --repository-url URL, or --repository NAME (pypi, testpypi, or a "
            "section of .pypirc), or --to PLACE"
        )
    try:
        from .._publishing.upload_api import UploadApi, open_settings
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"uploads need {error.name}: {install_command('publish')}"
        ) from None

    sources = Sources.from_environ(os.environ)
    options["cacert"] = options["cacert"] or sources.cert or os.environ.get("SSL_CERT_FILE")
    options["client_cert"] = options["client_cert"] or sources.client_cert
    settings = open_settings(**options)
    sources = replace(sources, cert=settings.cacert, client_cert=settings.client_cert)
    return UploadApi(settings, sources, index_url=index_url)


def _storage(directory: Path, to: str) -> Target:
    top, folder = directory.resolve(), Path(to).resolve()
    if "://" not in to and (folder == top or top in folder.parents):
        raise click.UsageError(
            f"{to}: is in {directory}: give a directory beside it; to make an index of the "
            "directory itself, see variants index"
        )
    return StoredIndex(open_store(to))


def _tree(
    target: Target,
    releases: Sequence[Release],
    done: Published,
    findings: Sequence[Finding] | None,
) -> dict[str, Any]:
    """Return what ``--json`` prints; *findings* are None in a dry run."""
    files = [
        {
            "filename": file.filename,
            "sha256": file.distribution.sha256,
            "size": file.distribution.size,
            "attestations": len(file.attestations),
            "state": done.states[file.filename],
        }
        for release in releases
        for file in release.files
    ]
    tree = {"target": target.place, "dry-run": findings is None, "files": files}
    if findings is None:
        return tree
    return {
        **tree,
        "metadata": [
            {"filename": name, "sha256": digest, "merged": name in done.merged}
            for name, digest in sorted(done.documents.items())
        ],
        "verified": not any(finding.severity == ERROR for finding in findings),
        "findings": [asdict(finding) for finding in findings],
    }


def _show(target: Target, done: Published, findings: Sequence[Finding]) -> None:
    _show_findings(findings)
    uploaded = sum(state == "uploaded" for state in done.states.values())
    is_verified = not any(finding.severity == ERROR for finding in findings)
    click.echo(
        f"{counted(uploaded, 'file')} uploaded, {len(done.states) - uploaded} there before, "
        f"{'verified' if is_verified else 'not as published'}: {target.place}"
    )


def _show_findings(findings: Sequence[Finding]) -> None:
    for finding in findings:
        show = fail if finding.severity == ERROR else warn
        show(one_line(f"{finding.file}: {finding.message} [{finding.code}]"))


def _refuse_faults(directory: Path) -> None:
    errors = [finding for finding in check_directory(directory)[1] if finding.severity == ERROR]
    _show_findings(errors[:10])
    if errors:
        raise click.ClickException(
            f"{counted(len(errors), 'error')}: nothing was uploaded; see variants validate "
            f"{directory}"
        )
