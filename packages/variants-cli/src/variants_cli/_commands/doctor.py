"""`variants doctor` and `check`: what is installed, against what would fit this machine."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import click
from packaging.utils import canonicalize_name

from pep_variants import machines, safe_files
from pep_variants import preferences as user_preferences
from pep_variants.errors import VariantError, redacted
from pep_variants.machines import Detector
from pep_variants.options import OPTIONS
from variants_index import doctor as machine_doctor
from variants_index.doctor import Checkup, Findings, Problem
from variants_index.finder import Store
from variants_index.http import TargetError
from variants_plugins.runner import PluginRunner

from .._console import counted, print_json, print_table, warn
from .._verification import verify as verified
from .._verification import virtual_environment_paths
from .arguments import Command, json_option, option_values
from .index_options import Places, index_options, places, progress, repeated_options, resolving

if TYPE_CHECKING:
    from pep_variants.preferences import Place, UserSettings
    from variants_index.doctor import Commands, Compared, Environment, Pip

python_option = click.option(
    "--python", "python", metavar="PATH", type=click.Path(exists=True, path_type=Path),
    help="An interpreter or an environment. Default: the active one, as uv finds it.",
)  # fmt: skip


@click.command(cls=Command)
@click.argument("projects", metavar="[PROJECT]...", nargs=-1)
@python_option
@click.option("--offline", is_flag=True, help="Ask no index.")
@click.option(
    "--verify", is_flag=True,
    help="Only compare the installed files of this project and of pip with their RECORD.",
)  # fmt: skip
@index_options
@json_option
def doctor(
    projects: tuple[str, ...],
    python: Path | None,
    offline: bool,
    verify: bool,
    as_json: bool,
    **options: Any,  # noqa: ANN401
) -> None:
    """Show why a build was chosen here, what is wrong, and what to type.

    Shows every library, tool and file that detection tries, forced values, container and device
    files, settings and where they are from, pip and uv on PATH, and installed packages against
    those that fit now. PROJECTs are shown in any case. Changes nothing. Exits with 1 if something
    is wrong.
    """
    if verify:
        paths = virtual_environment_paths(python) or _environment(python).paths
        _print(verified(paths), as_json=as_json)
    look = _Look.of(python, options, projects, offline=offline)
    environment, checkup = look.environment, look.checkup
    parts = machine_doctor.common_parts(
        look.settings, look.problems, os.environ, look.where.sources,
        lambda drivers: machine_doctor.installers_part(
            os.environ, environment.python, drivers, look.pips
        ),
        root=Path("/"), start=Path.cwd(), candidates=look.candidates,
    )  # fmt: skip
    parts["environment"] = machine_doctor.environment_part(
        environment.root, environment.found_by, environment.version
    )
    groups: list[list[Compared]] = []
    found: list[Problem] = []
    if checkup is not None:
        is_read = all(problem.code != "configuration" for problem in Findings(parts).problems)
        if is_read and not offline:
            try:
                with machines.recorded():  # its warnings have been shown already
                    groups = look.compared(every=True)
            except (click.ClickException, VariantError) as error:
                text = error.message if isinstance(error, click.ClickException) else str(error)
                found.append(Problem("lookup", text, f"{checkup.commands.doctor} --offline"))
        with machines.recorded():
            found += checkup.problems(groups, reads_settings=is_read)
            parts["code"] = machine_doctor.code_part(checkup.items, checkup.codes)
        states = machine_doctor.shown_states(
            (each for group in groups for each in group), checkup.asked.indexes, checkup.named
        )
        if found or not offline:
            parts["packages"] = machine_doctor.packages_part(states, found)
    _print(Findings(parts), as_json=as_json)


@click.command(cls=Command)
@python_option
@click.option(
    "--all", "every", is_flag=True,
    help="Also check packages that are installed without a variant; fetches one page for each.",
)  # fmt: skip
@index_options
@json_option
def check(python: Path | None, every: bool, as_json: bool, **options: Any) -> None:  # noqa: ANN401
    """List installed packages that have a better variant.

    Compares what is installed with what this machine could have, of other releases only where the
    installed one has no build for the accelerator that is here. Includes packages that the
    catalogue describes, and warns of packages that own the same files or lack some. Changes
    nothing. Exits with 1 if there are any.
    """
    look = _Look.of(python, options)
    checkup = look.checkup
    for problem in look.problems:
        if problem.code == "configuration":
            raise click.ClickException(problem.text)
        warn(problem.text)
    if checkup is None:
        raise click.ClickException(look.error)
    groups = look.compared(every=every)
    compared = [each for group in groups for each in group]
    better = [(each, each.advice) for each in compared if each.advice is not None]
    for each in compared:
        if each.error is not None:
            raise click.ClickException(str(each.error))
    found = list(checkup.problems(groups))
    for problem in found:
        if problem.code in ("choice", "metadata"):
            warn(problem.text)
    in_table = ("better-variant", "metadata", *(["stale-variant"] if better else []))
    others = [problem for problem in found if problem.fails and problem.code not in in_table]
    for problem in others:
        warn(f"{problem.text} (variants doctor says what to type)")
    if as_json:
        trees = [
            {
                "project": each.item.project, "version": str(each.item.version),
                "installed": advice.installed, "better": advice.better,
                "release": None if advice.version is None else str(advice.version),
                "unfit": advice.unfit, "why": advice.why,
            }
            for each, advice in better
        ]  # fmt: skip
        print_json({"checked": len(compared), "better": trees})
    elif not better:
        click.echo(f"{counted(len(compared), 'package')} checked, none has a better variant")
    else:
        rows = [
            (
                each.name,
                each.label or advice.installed or "(none)",
                (advice.better or "(none)")
                + (f" of {advice.version}" if advice.version is not None else ""),
                f"does not fit: {'; '.join(advice.unfit)}" if advice.unfit else advice.why,
            )
            for each, advice in better
        ]
        print_table(("package", "installed", "better", "why"), rows)
        names = [each.item.project for group in groups for each in group
                 if any(one.advice for one in group)]  # fmt: skip
        commands = checkup.commands
        first = "" if commands.knows_variants else f", once pip knows variants ({commands.doctor})"
        click.echo(f"To switch{first}: {commands.switched(names)}")
    click.get_current_context().exit(1 if better or others else 0)


class _Look(NamedTuple):
    """What both commands look at.

    Attributes:
        environment: in which packages are installed.
        where: the indexes and the machine.
        settings, problems: as `settings_of` returns them.
        candidates: where these files are looked for.
        pips: on ``PATH`` and in the environment.
        checkup: of the environment; None if the machine cannot be read.
        error: why not.
    """

    environment: Environment
    where: Places
    settings: UserSettings
    problems: list[Problem]
    candidates: Sequence[Place]
    pips: Sequence[Any]
    checkup: Checkup | None
    error: str = ""

    @classmethod
    def of(
        cls,
        python: Path | None,
        options: dict[str, Any],
        projects: Sequence[str] = (),
        *,
        offline: bool = False,
    ) -> _Look:
        """Return what the *options* of a command mean; those about indexes are removed from it.

        Raises:
            ClickException: there is no working Python, or an option is not valid.
        """
        if len(options["targets"]) > 1:
            raise click.UsageError("--platform can be given once: an environment is on one machine")
        environment = _environment(python)
        pips = machine_doctor.find_pips(os.environ, environment.python)
        words, pip = machine_doctor.choose_pip(environment, pips)
        configured = machine_doctor.pip_settings(words, os.environ)
        given = repeated_options(options)
        machine = next(iter(options["targets"]), None)
        options["python_version"] = options["python_version"] or environment.version
        where = places(options, configured=configured)
        values = option_values(options)
        if where.targets[0].platform is not None:
            values["variant-platform"] = machine
        for option in OPTIONS:  # pip has them from its files; MEANINGS are hints of their own
            text = configured.get(option.name, "")
            if option.name == "variant-catalog" and any(
                machine_doctor.catalog_problems(text, "", "")
            ):
                continue  # said of pip's settings
            if text and option.metavar and option.name not in machine_doctor.MEANINGS:
                found = text.split() if option.repeatable else text
                values[option.name] = values.get(option.name) or found
        candidates = user_preferences.places(
            Path(), str(environment.root), prefix_is_project=environment.in_project
        )
        settings, problems = machine_doctor.settings_of(values, os.environ, candidates)
        preferences, target = settings.preferences, where.targets[0]
        checkup, error = None, ""
        try:
            detector = Detector.of(
                preferences,
                runner=lambda: PluginRunner.of(preferences, where.sources, offline=offline),
                environment=target.environment,
                platform=target.platform,
                here=target.here,
            )
            checkup = Checkup(
                environment.paths, target, detector.platform, preferences, where.sources,
                _commands(environment, (words, pip), given, where, values, python).of_project(
                    environment.root.parent
                ),
                [canonicalize_name(name) for name in projects],
                Store(safe_files.cache_directory(os.environ, "index")) if where.cached else None,
            )  # fmt: skip
        except VariantError as raised:  # which is said of the settings, too
            error = str(raised)
        return cls(environment, where, settings, problems, candidates, pips, checkup, error)

    def compared(self, *, every: bool) -> list[list[Compared]]:
        """Return what the indexes have of what is installed, in groups of `agreed`.

        Args:
            every: also of what is installed without a variant, which takes a page for each.

        Raises:
            ClickException: the catalogue cannot be fetched.
            VariantError: it cannot be read.
        """
        checkup = self.checkup
        assert checkup is not None
        preferences = self.settings.preferences
        with resolving(self.where, {}, preferences) as resolver, progress() as tell:
            comparison = checkup.comparison(resolver.finder, os.environ)
            wanted = machine_doctor.wants(checkup.named, every=every)
            found = machine_doctor.compare_all(checkup.items, lambda _: comparison, wanted, tell)
            return machine_doctor.agreed(found, resolver.finder.entries.together)


def _commands(
    environment: Environment,
    pip: tuple[tuple[str, ...], Pip | None],
    given: Sequence[str],
    where: Places,
    values: Mapping[str, Any],
    python: Path | None,
) -> Commands:
    """Return what to type in *environment*, with pip or, where none can do it, with `uv-variants`.

    Args:
        environment: that is looked at.
        pip: from `choose_pip`.
        given: the options of this command, for pip.
        where: indexes of options and of pip, which uv does not know.
        values: options about variants, those of pip included.
        python: ``--python`` of this command.
    """
    words, found = pip
    knows = found is not None and found.patched
    is_own = found is not None and found.is_own
    named = ["--python", str(python)] if python is not None else []
    chosen = {name.replace("-", "_"): value for name, value in values.items()}
    of_pip = {name: value for name, value in chosen.items()
              if f"--{name.replace('_', '-')}" not in given}  # fmt: skip
    explain = shlex.join(("variants", "explain", *given, *repeated_options(of_pip)))
    doctor = shlex.join(("variants", "doctor", *named, *given))
    system = [machine_doctor.SYSTEM] if environment.is_managed else []
    if (knows and is_own) or not any(machine_doctor.programs("uv-variants", os.environ)):
        return machine_doctor.pip_commands(
            words, [*system, *given], explain=explain, doctor=doctor, knows=knows
        )
    sources = where.sources
    pairs = [("--index-url", sources.index_url)]
    pairs += [("--extra-index-url", url) for url in sources.extra_index_urls]
    pairs += [("--find-links", url) for url in sources.find_links]
    indexes = [redacted(word) for pair in pairs if pair[1] for word in pair if word]
    if sources.extra_index_urls:
        indexes += ["--index-strategy", "unsafe-best-match"]
    own = repeated_options(chosen)
    target = ["--python", str(environment.python), *system, *indexes]
    return machine_doctor.uv_commands(own, target, explain=explain, doctor=doctor)


def _print(findings: Findings, *, as_json: bool) -> NoReturn:
    """Print what was found, and exit with 1 if something is wrong."""
    if as_json:
        print_json(findings.as_tree())
    else:
        for line in machine_doctor.lines(findings):
            click.echo(line)
    click.get_current_context().exit(0 if findings.is_well else 1)


def _environment(python: Path | None) -> Environment:
    try:
        return machine_doctor.find_environment(python, os.environ, Path())
    except TargetError as error:
        raise click.ClickException(str(error)) from None
