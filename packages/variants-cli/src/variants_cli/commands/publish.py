"""`variants publish`: uploads a release so that nothing is lost and nothing half done."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..checks.finding import ERROR
from ..console import counted, fail, note, one_line, print_json, warn
from .arguments import json_option
from .index_options import progress
from .publish_options import publish_options, upload_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..checks.finding import Finding
    from ..publishing.target import Release, Target
    from ..publishing.transaction import Published, Transaction


@click.command(short_help="Upload wheels and metadata.")
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@publish_options
@click.option(
    "--without-metadata",
    is_flag=True,
    help="Do not upload *-variants.json: the index creates it, or installers read the wheels.",
)
@click.option(
    "--attestations/--no-attestations",
    default=None,
    help="Require an attestation beside every file, or upload none. Default: those that are there.",
)
@click.option(
    "--skip-existing",
    is_flag=True,
    help="Also skip files of which the index has the name and gives no hash to compare.",
)
@click.option(
    "--verify/--no-verify",
    default=True,
    help="Validate the live pages of the index afterwards. Default: --verify.",
)
@click.option(
    "--journal",
    "journal_folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where to keep what was uploaded. Default: DIRECTORY-publish.",
)
@click.option(
    "--dry-run", is_flag=True, help="Compare with the index and show the uploads in their order."
)
@json_option
def publish(
    directory: Path,
    without_metadata: bool,
    attestations: bool | None,
    skip_existing: bool,
    verify: bool,
    journal_folder: Path | None,
    dry_run: bool,
    as_json: bool,
    **options: Any,  # noqa: ANN401 - those of publish_options
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
    from contextlib import closing

    from ..publishing.reporting import reporter
    from ..publishing.transaction import Transaction, parts_of

    _refuse_faults(directory)
    with progress() as show:
        from ..publishing.release_files import read_releases

        releases = read_releases(
            directory, metadata=not without_metadata, attestations=attestations, progress=show
        )
    if not releases:
        raise click.ClickException(f"{directory}: no distributions to publish")
    with closing(_target(directory, options)) as target:
        total = sum(file.distribution.size for release in releases for file in release.files)
        steps = parts_of(releases, commits_last=target.commits_last)
        with reporter(len(steps), total, as_json=as_json) as shown:
            transaction = Transaction(target, releases, shown, skip_existing=skip_existing)
            if dry_run:
                states = transaction.preview()
            else:
                done, findings = _publish(
                    directory, target, releases, transaction, journal_folder, verify=verify
                )
    if dry_run:
        _show_plan(target, releases, states, as_json=as_json)
        return
    _show(target, releases, done, findings, as_json=as_json)
    if any(finding.severity == ERROR for finding in findings or ()):
        sys.exit(1)


def _publish(
    directory: Path,
    target: Target,
    releases: Sequence[Release],
    transaction: Transaction,
    journal_folder: Path | None,
    *,
    verify: bool,
) -> tuple[Published, list[Finding] | None]:
    from ..publishing.journal import journal_path, open_journal
    from ..publishing.verification import verify as verified

    path = journal_path(directory, target.place, journal_folder)
    with open_journal(path, target.place) as journal:
        done = transaction.run(journal)
        findings = None
        if verify:
            findings = verified(target, releases, done.committed, transaction.reporter)[1]
        journal.finish()
    return done, findings


def _storage(directory: Path, to: str, pages: str | None, options: dict[str, Any]) -> Target:
    from ..publishing.places import open_target

    for name in ("repository_url", "repository"):
        if options[name] is not None:
            raise click.UsageError(f"--to and --{name.replace('_', '-')} exclude each other")
    top = directory.resolve()
    for place in filter(None, (to, pages)):
        folder = Path(place.removeprefix("github-pages:")).resolve()
        if "://" not in place and (folder == top or top in folder.parents):
            raise click.UsageError(
                f"{place}: is in {directory}: give a directory beside it; to make an index of "
                "the directory itself, see variants index"
            )
    return open_target(to, os.environ, pages=pages, index_url=options["index_url"], note=note)


def _target(directory: Path, options: dict[str, Any]) -> Target:
    from dataclasses import replace

    from pep_variants.sources import Sources

    from ..publishing.destination import destination_of
    from ..publishing.retries import Retries
    from ..publishing.upload_api import UploadApi

    to, pages = options.pop("to"), options.pop("pages")
    if to is not None:
        return _storage(directory, to, pages, options)
    if pages is not None:
        raise click.UsageError("--pages is for --to github-releases:OWNER/REPOSITORY@TAG")
    retries = Retries(retries=options.pop("retries"))
    ask = _ask if sys.stdin.isatty() and sys.stderr.isatty() else None
    found = destination_of(upload_options(options), os.environ, note=note, ask=ask)
    if found is None:
        raise click.UsageError(
            "where to? Give --repository-url URL, or --repository NAME (pypi, testpypi, or a "
            "section of .pypirc), or --to PLACE"
        )
    sources = Sources.from_environ(os.environ)
    sources = replace(
        sources,
        cert=found.cert or sources.cert,
        client_cert=found.client_cert or sources.client_cert,
    )
    return UploadApi(
        found.upload_url,
        found.login,
        sources,
        os.environ,
        index_url=None if found.guessed else found.index_url,
        retries=retries,
        note=note,
    )


def _ask(text: str, *, hidden: bool) -> str:
    answer: str = click.prompt(text, hide_input=hidden, default="", show_default=False, err=True)
    return answer


def _show_plan(
    target: Target, releases: Sequence[Release], states: dict[str, str], *, as_json: bool
) -> None:
    from ..publishing.transaction import parts_of

    parts = parts_of(releases, commits_last=target.commits_last)
    if as_json:
        print_json({"target": target.place, "dry-run": True, "files": _files(releases, states)})
        return
    for part in parts:
        click.echo(f"{part.kind.value}:")
        for name in [file.filename for file in part.files] or _documents(releases):
            click.echo(f"  {name}  {states.get(name, 'merged with what is there')}")


def _documents(releases: Sequence[Release]) -> list[str]:
    from pep_variants.model.filename import metadata_filename

    return [
        metadata_filename(release.project, release.version)
        for release in releases
        if release.document is not None
    ]


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
    from ..publishing.transaction import UPLOADED

    errors = [finding for finding in findings or () if finding.severity == ERROR]
    if as_json:
        print_json(
            {
                "target": target.place,
                "dry-run": False,
                "files": _files(releases, dict(done.states)),
                "metadata": [
                    {"filename": name, "sha256": digest, "merged": name in done.committed.merged}
                    for name, digest in sorted(done.committed.documents.items())
                ],
                "verified": None if findings is None else not errors,
                "findings": [finding.tree() for finding in findings or ()],
            }
        )
        return
    for finding in findings or ():
        text = one_line(f"{finding.file}: {finding.message} [{finding.code}]")
        (fail if finding.severity == ERROR else warn)(text)
    uploaded = sum(state == UPLOADED for state in done.states.values())
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
