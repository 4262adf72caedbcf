"""Findings of checks, and how every command that checks prints them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import click

from variants_catalog.catalogs import Finding

from .._console import coloured, counted, one_line, print_json, warn

if TYPE_CHECKING:
    from collections.abc import Sequence

ERROR: Final = "error"
WARNING: Final = "warning"
NOTE: Final = "note"


class Kind(NamedTuple):
    """What all findings of one code have in common.

    Attributes:
        severity: ``error``, ``warning``, or ``note`` for what may be meant so.
        remedy: what to do about it. ``{again}`` is how the index is written again; other values
            come with the finding.
    """

    severity: Literal["error", "warning", "note"]
    remedy: str


_REBUILD = Kind(ERROR, "rebuild it")
_CURRENT = "write format 0.1.1, or 0.2.0 if there are providers"

KINDS = {
    # One document.
    "invalid-metadata": Kind(ERROR, "correct it: installers ignore the variants of this version"),
    "unsupported-schema": Kind(ERROR, _CURRENT),
    "schema-missing": Kind(WARNING, _CURRENT),
    "schema-unknown": Kind(WARNING, _CURRENT),
    "duplicate-key": Kind(ERROR, "keep one of them: readers disagree on which one they use"),
    "unknown-key": Kind(WARNING, "remove it, or correct its name; there are {known}"),
    "namespaces-missing": Kind(
        ERROR, "list every namespace that variants of this project use, most important first"
    ),
    "provider-missing": Kind(
        ERROR, "add providers.{namespace} with requires, builtin or static-properties"
    ),
    "invalid-requirement": Kind(ERROR, "write a requirement such as 'acme-provider>=1,<2'"),
    "invalid-marker": Kind(ERROR, """write a marker such as "platform_system == 'Linux'\""""),
    "abi-dependency-listed": Kind(ERROR, "remove it here; variants keep their properties of it"),
    "abi-dependency-value": Kind(ERROR, "write the release that it was built against, such as 2.9"),
    "abi-dependency-name": Kind(ERROR, "write {normalized}"),
    "never-compatible": Kind(ERROR, "correct the value, or add it to static-properties"),
    "unknown-value": Kind(WARNING, "correct the value"),
    "values-unsorted": Kind(WARNING, "sort the values, each once"),
    "same-properties": Kind(
        WARNING, "give different builds different properties, or equal builds one label"
    ),
    "index-filename": Kind(ERROR, "name it {expected}"),
    # One wheel.
    "invalid-filename": Kind(ERROR, "correct the name of the file"),
    "invalid-wheel": _REBUILD,
    "metadata-missing": Kind(
        ERROR, "make variant wheels with variants make; renaming is not enough"
    ),
    "label-missing": Kind(ERROR, "restore its name, or remove the metadata with variants unmake"),
    "label-mismatch": Kind(
        ERROR, "name the file after its one label, or make it again with the other one"
    ),
    "metadata-file-missing": _REBUILD,
    "identity-mismatch": Kind(
        ERROR, "rename a project or its version with variants make, not by hand"
    ),
    "invalid-dependency": Kind(
        ERROR, "correct it: installers refuse the wheel or drop the dependency"
    ),
    "marker-never-true": Kind(WARNING, "correct the label or property that it names, or remove it"),
    "gpu-code-missing": Kind(
        WARNING,
        "build for them, or remove the property unless kernels are made at run time",
    ),
    "gpu-code-unnamed": Kind(
        NOTE, "add their properties, if it is meant for them: variants inspect shows all"
    ),
    "record-missing": _REBUILD,
    "record-invalid": _REBUILD,
    "record-incomplete": _REBUILD,
    "record-mismatch": Kind(ERROR, "make it again with variants unmake and variants make"),
    # The files of a version, and the pages that list them.
    "inconsistent-wheels": Kind(ERROR, "make all wheels of a version from one description"),
    "index-metadata-missing": Kind(WARNING, "write it before publishing, with variants index"),
    "index-mismatch": Kind(ERROR, "{again}"),
    "label-not-indexed": Kind(ERROR, "{again}"),
    "label-without-wheel": Kind(
        WARNING, "add the wheel, if it is not published elsewhere, or {again}"
    ),
    "no-fallback": Kind(
        WARNING,
        "add a null variant (variants make --label null) or a non-variant wheel, if it is not "
        "published elsewhere",
    ),
    "core-metadata-mismatch": Kind(ERROR, "{again}"),
    "invalid-page": Kind(ERROR, "{again}"),
    "page-file-missing": Kind(ERROR, "{again}"),
    "page-mismatch": Kind(ERROR, "{again}"),
    "not-listed": Kind(ERROR, "{remedy}"),
    "listed-twice": Kind(ERROR, "list every file once"),
    "hash-missing": Kind(WARNING, "publish hashes, as variants index does"),
}
"""What `variants validate` finds, by code; docs/reference/findings.md has the meanings."""


@dataclass
class Report:
    """Collects findings.

    Attributes:
        file: path or URL of the file that is checked.
        prefix: put before every place, for a document inside a wheel.
        again: how to write the index again.
        findings: what was found.
    """

    file: str = ""
    prefix: str = ""
    again: str = "write it again: variants index"
    findings: list[Finding] = field(default_factory=list)

    def add(self, code: str, place: str, message: str, file: str = "", **values: str) -> None:
        """Add a finding.

        Args:
            code: of `KINDS`.
            place: where in the file, empty for the whole of it.
            message: what is wrong.
            file: that it is in, if that is not the one that is checked.
            values: for the remedy.
        """
        kind = KINDS[code]
        remedy = kind.remedy.format(again=self.again, **values)
        place = f"{self.prefix}{place}" if place else self.prefix.rstrip(". ")
        finding = Finding(kind.severity, code, file or self.file, place, message, remedy)
        self.findings.append(finding)


def require_valid(findings: Sequence[Finding]) -> None:
    """Print *findings* about metadata as warnings; fail for the first error."""
    for finding in findings:
        message = ": ".join(filter(None, (finding.file, finding.place, finding.message)))
        if finding.severity == ERROR:
            raise click.ClickException(message)
        warn(message)


def report(
    findings: Sequence[Finding], checked: int, *, noun: str, as_json: bool, **more: object
) -> int:
    """Print *findings* and how many there are; return the exit code, 1 if there are errors.

    Args:
        findings: in the order in which they are printed.
        checked: number of things that were checked.
        noun: what these are, in the singular.
        as_json: print JSON for programs.
        more: keys of the JSON.
    """
    errors = sum(finding.severity == ERROR for finding in findings)
    warnings = sum(finding.severity == WARNING for finding in findings)
    if as_json:
        tree = {"checked": checked, "errors": errors, "warnings": warnings}
        print_json({**tree, "findings": [asdict(finding) for finding in findings], **more})
        return 1 if errors else 0
    for finding in findings:
        _show(finding)
    click.echo(
        f"{counted(checked, noun)} checked: {counted(errors, 'error')}, "
        f"{counted(warnings, 'warning')}"
    )
    return 1 if errors else 0


def _show(finding: Finding) -> None:
    place = ": ".join(part for part in (finding.file, finding.place) if part)
    severity = coloured(finding.severity, "red" if finding.severity == ERROR else "yellow")
    click.echo(f"{one_line(place)}: {severity}: {one_line(finding.message)} [{finding.code}]")
    click.echo(f"    {one_line(finding.remedy)}")
