"""`variants publish`: uploads a release so that nothing is lost and nothing half done."""

from __future__ import annotations

import os
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..checks.finding import ERROR
from ..console import counted, fail, note, one_line, print_json, printable, warn
from .arguments import json_option
from .index_options import progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..checks.finding import Finding
    from ..publishing.release import Release
    from ..publishing.storage import StorageTarget
    from ..publishing.transaction import Published
    from ..publishing.upload_api import UploadApi

    Target = UploadApi | StorageTarget


@click.command(short_help="Upload wheels and metadata.")
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--repository-url", metavar="URL", envvar=["TWINE_REPOSITORY_URL", "UV_PUBLISH_URL"],
    help="Upload URL of the index; also TWINE_REPOSITORY_URL or UV_PUBLISH_URL.",
)  # fmt: skip
@click.option(
    "-r", "--repository", metavar="NAME", envvar="TWINE_REPOSITORY",
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
    "-p", "--password", metavar="TEXT", envvar=["TWINE_PASSWORD", "UV_PUBLISH_PASSWORD"],
    help="Password. Better in TWINE_PASSWORD, .pypirc, netrc or keyring.",
)  # fmt: skip
@click.option(
    "--token", metavar="TOKEN", envvar="UV_PUBLISH_TOKEN",
    help="API token. Better in UV_PUBLISH_TOKEN.",
)  # fmt: skip
@click.option(
    "--cert", metavar="FILE", envvar="TWINE_CERT",
    help="Bundle of certificate authorities; also TWINE_CERT.",
)  # fmt: skip
@click.option("--client-cert", metavar="FILE", help="Client certificate with its key.")
@click.option(
    "--retries", type=click.IntRange(0, 100), default=6, show_default=True,
    help="How often a request is sent again after a failure that may pass.",
)  # fmt: skip
@click.option(
    "--without-metadata", is_flag=True,
    help="Do not upload *-variants.json: the index creates it, or installers read the wheels.",
)  # fmt: skip
@click.option(
    "--attestations/--no-attestations", default=None,
    help="Require an attestation beside every file, or upload none. Default: those there are.",
)  # fmt: skip
@click.option(
    "--skip-existing", is_flag=True,
    help="Also skip files of which the index has the name and gives no hash to compare.",
)  # fmt: skip
@click.option(
    "--verify/--no-verify", default=True,
    help="Validate the live pages of the index afterwards. Default: --verify.",
)  # fmt: skip
@click.option(
    "--journal", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
    help="Where to keep what was uploaded. Default: DIRECTORY-publish.",
)  # fmt: skip
@click.option(
    "--dry-run", is_flag=True,
    help="Compare with the index and show the uploads in their order.",
)  # fmt: skip
@json_option
def publish(
    directory: Path,
    without_metadata: bool,
    attestations: bool | None,
    skip_existing: bool,
    verify: bool,
    journal: Path | None,
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
    same command goes on from where it was. Files that the index has already, with the same hash,
    are not uploaded again.

    Example: variants publish dist --repository-url https://index.example/legacy/

    Example: variants publish dist --to s3://wheels.example.org/nightly
    """
    from ..publishing import transaction
    from ..publishing.journal import journal_path, open_journal
    from ..publishing.release import read_releases

    _refuse_faults(directory)
    with progress() as show:
        releases = read_releases(
            directory, metadata=not without_metadata, attestations=attestations, progress=show
        )
    if not releases:
        raise click.ClickException(f"{directory}: no distributions to publish")
    with closing(_target(directory, options)) as target:
        if dry_run:
            states = transaction.compare(target, releases, skip_existing=skip_existing)
            target.probe(releases, dry=True)
            _show_plan(target, releases, states, as_json=as_json)
            return
        path = journal_path(directory, target.place, journal)
        with open_journal(path, target.place) as record:
            done = transaction.publish(
                target,
                releases,
                record,
                lambda text: None if as_json else click.echo(printable(text)),
                skip_existing=skip_existing,
            )
            findings = None
            if verify:
                findings = transaction.verify(target, releases, done, note)
            record.finish()
    _show(target, releases, done, findings, as_json=as_json)
    if any(finding.severity == ERROR for finding in findings or ()):
        sys.exit(1)


def _target(directory: Path, options: dict[str, Any]) -> Target:
    from dataclasses import replace

    from pep_variants.sources import Sources

    def is_typed(name: str) -> bool:
        source = click.get_current_context().get_parameter_source(name)
        return source is click.core.ParameterSource.COMMANDLINE

    to, index_url, retries, token = (
        options.pop(name) for name in ("to", "index_url", "retries", "token")
    )
    typed = [name for name in ("repository", "repository_url") if is_typed(name)]
    if len(typed) + (to is not None) > 1:
        raise click.UsageError("--to, --repository and --repository-url exclude each other")
    sources = Sources.from_environ(os.environ)
    if to is not None:
        return _storage(directory, to, index_url, sources)
    if typed == ["repository"]:
        options["repository_url"] = None
    if options["repository"] is None and options["repository_url"] is None:
        raise click.UsageError(
            "where to? Give --repository-url URL, or --repository NAME (pypi, testpypi, or a "
            "section of .pypirc), or --to PLACE"
        )
    if token and (options["password"] is None or is_typed("token")):
        options |= {"username": "__token__", "password": token}

    try:
        from ..publishing.upload_api import UploadApi, UploadClient, open_settings
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"uploads need {error.name}: pip install 'variants-cli[publish]'"
        ) from None

    options["cert"] = options["cert"] or sources.cert
    options["client_cert"] = options["client_cert"] or sources.client_cert
    settings = open_settings(**options)
    sources = replace(sources, cert=settings.cacert, client_cert=settings.client_cert)
    client = UploadClient(settings, retries=retries, note=note)
    return UploadApi(client, sources, index_url=_with_slash(index_url), note=note)


def _storage(directory: Path, to: str, index_url: str | None, sources: Any) -> Target:  # noqa: ANN401
    from variants_index.http.session import Session

    from ..publishing.storage import StorageTarget
    from ..publishing.stores import open_store

    top, folder = directory.resolve(), Path(to).resolve()
    if "://" not in to and (folder == top or top in folder.parents):
        raise click.UsageError(
            f"{to}: is in {directory}: give a directory beside it; to make an index of the "
            "directory itself, see variants index"
        )
    session = None if index_url is None else Session(sources)
    return StorageTarget(open_store(to), index_url=_with_slash(index_url), session=session)


def _with_slash(url: str | None) -> str | None:
    return f"{url.rstrip('/')}/" if url else None


def _show_plan(
    target: Target, releases: Sequence[Release], states: dict[str, str], *, as_json: bool
) -> None:
    from ..publishing.release import parts_of

    if as_json:
        print_json({"target": target.place, "dry-run": True, "files": _files(releases, states)})
        return
    documents = [release.document_name for release in releases if release.document is not None]
    for part in parts_of(releases, commits_last=target.commits_last):
        click.echo(f"{part.kind.value}:")
        for name in [file.filename for file in part.files] or documents:
            click.echo(f"  {name}  {states.get(name, 'merged with what is there')}")


def _files(releases: Sequence[Release], states: dict[str, str]) -> list[dict[str, Any]]:
    return [
        {
            "filename": file.filename,
            "sha256": file.distribution.sha256,
            "size": file.distribution.size,
            "attestations": len(file.attestations),
            "state": states[file.filename],
        }
        for release in releases
        for file in release.files
    ]


def _show(
    target: Target,
    releases: Sequence[Release],
    done: Published,
    findings: Sequence[Finding] | None,
    *,
    as_json: bool,
) -> None:
    errors = [finding for finding in findings or () if finding.severity == ERROR]
    if as_json:
        print_json(
            {
                "target": target.place,
                "dry-run": False,
                "files": _files(releases, done.states),
                "metadata": [
                    {"filename": name, "sha256": digest, "merged": name in done.merged}
                    for name, digest in sorted(done.documents.items())
                ],
                "verified": None if findings is None else not errors,
                "findings": [finding.tree() for finding in findings or ()],
            }
        )
        return
    for finding in findings or ():
        text = one_line(f"{finding.file}: {finding.message} [{finding.code}]")
        (fail if finding.severity == ERROR else warn)(text)
    uploaded = sum(state == "uploaded" for state in done.states.values())
    checked = "" if findings is None else ", verified" if not errors else ", not as published"
    click.echo(
        f"{counted(uploaded, 'file')} uploaded, {len(done.states) - uploaded} there before"
        f"{checked}: {target.place}"
    )


def _refuse_faults(directory: Path) -> None:
    from ..checks.directory import check_directory

    errors = [finding for finding in check_directory(directory)[1] if finding.severity == ERROR]
    for finding in errors[:10]:
        fail(one_line(f"{finding.file}: {finding.message} [{finding.code}]"))
    if errors:
        raise click.ClickException(
            f"{counted(len(errors), 'error')}: nothing was uploaded; see variants validate "
            f"{directory}"
        )
