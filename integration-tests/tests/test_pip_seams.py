"""Every private name of pip that the shim touches may be gone tomorrow: pip works all the same.

Each is renamed in turn, in real pips, see `support.pip_seams`. A pip of which the shim is not sure
ignores variants; it never fails over a project without them, and never installs half of a variant.
"""

from __future__ import annotations

import ast
import functools

import pytest

from support import pip_seams
from support.environments import PIPS, find_python
from support.index import served
from support.pip_commands import PipCommands
from support.pip_seams import SHIM, linked
from support.projects import CUDA_12_8, app_index
from support.wheels import Wheel

SHARED = """
_ add append auth cache cert check close cls CommandError context copy dist Distribution
DistributionNotFound e error factory failed filename files finder format func get get_metadata
getLogger hashes
has_metadata headers identifier index info install InvalidWheelFilename is_file items
label link links locked log mapping marker message metadata missing name options package_set
packages
parent parser partition path project project_name proxies Pylock query raw read
read_text reason req Requirement requirements reset resolve self session set source specifier
status_code supported tell text timeout url values verify version Wheel
cmd comments direct_url requirement
platforms run target_python update
add_options build_env content_type downloaded extras format_control hash information local new
raise_for_status requires_python
search_scope total iterdir
""".split()
"""Names that pip shares with libraries: renamed where the shim reads them, not in pip."""

PRIVATE = """
Cache
cmd_opts create_command
_build_package_finder _candidate _dist _dist_to_dict _factory _fetch_metadata_only _files _finder
_hashes _install_req_to_dict _installed_dists _iter_found_candidates _link_collector
_make_candidate_from_link _metadata_impl _prepare_linked_requirement _result _upgrade_strategy
_user_requested causes check_install_conflicts check_package_set comes_from
determine_resolver_variant evaluate_links Factory file_path find_all_candidates find_links
format_for_columns format_for_json FoundCandidates from_dict from_metadata_file_contents
get_default_environment get_distribution get_infos get_installation_error
get_metadata_distribution get_pip_version get_runnable_pip indent_log
index_urls IndexCommand info_location InMemoryMetadata
InprocessBuildEnvironmentInstaller insert_option_group InspectCommand
install_req InstallationError InstallationReport ireq is_installed is_satisfied_by
metadata_file_data
isolated_mode iter_dependencies iter_installed_distributions Link link_evaluator ListCommand
make_distribution_for_install_requirement metadata_contents msg PackageFinder path_to_url
pip_proxy PipError PipProvider pkgs prompting read_wheel_metadata_file
RequirementCommand RequirementPreparer Resolver root_reqs search_packages_info
should_reinstall source_link to_install trusted_hosts url_without_fragment user_supplied wheel_name
WheelDistribution write_output
py_version_info
call_subprocess editable get_dist_to_uninstall
FrozenRequirement from_dist
_get_cache_dir _get_candidates _lib_dirs get_environment iter_all_distributions lib_dirs
_check_download_dir _dev_pkgs _fetch_metadata_using_lazy_wheel _get_prepared_distribution
find_best_candidate process_project_url project_url save_linked_requirement
""".split()
CATALOG = """
_get_simple_response _make_index_content cache_link_parsing canonical_name criteria format_control
format_for_error get_allowed_formats get_candidate_lookup get_install_candidate hash_file hash_name
InstallationCandidate is_secure_origin local_file_path make_link_evaluator no_index parse_links
search_scope TempDirectory yanked_reason
""".split()
PRIVATE += [name for name in CATALOG if name not in SHARED]
"""All other names of pip that the shim touches; `CATALOG` are those for the catalogue alone.

A name that is new in the shim's source is to be added here (or to `SHARED`), which runs the tests
below with it.
"""

# The oldest and the newest, and with them both of pip's metadata backends.
TAIL = [("3.10", PIPS[0]), ("3.13", PIPS[-1])]

ON_GPU = {"always", "app", "for-128", "for-cu128", "for-gpu"}
PLAIN = {"always", "app"}


def pytest_generate_tests(metafunc):
    """Try everything on every pip with ``--full-matrix``, else a sample on `TAIL`, by turns."""
    if "seam_pips" not in metafunc.fixturenames:
        return
    known = {
        "name": PRIVATE,
        "shared_name": SHARED,
        "module": modules(),
        "catalog_name": CATALOG,
    }
    argument = next((item for item in known if item in metafunc.fixturenames), None)
    values = known.get(argument, [None])
    if metafunc.config.getoption("full_matrix"):
        every = [TAIL[0], *(("3.12", pip) for pip in PIPS[1:-1]), TAIL[1]]
        cases = [(value, [pip]) for value in values for pip in every]
    elif argument is None:
        cases = [(None, [pip]) for pip in TAIL]
    else:
        step = 6 if argument == "module" else 16
        cases = [
            (value, TAIL[:: 1 if number % 2 else -1]) for number, value in enumerate(values[::step])
        ]
    names = [name for name in (argument, "seam_pips") if name]
    ids = ["-".join(filter(None, (value, f"pip{pips[0][1]}"))) for value, pips in cases]
    metafunc.parametrize(names, [case[-len(names) :] for case in cases], ids=ids)


@pytest.fixture(scope="module")
def index():
    """A project without variants, one with them and with a plain wheel, and a newer pip."""
    found = app_index(plain=True)
    found.add_wheel(Wheel("plain", "1.0", requires=("always",)))
    found.add_wheel(Wheel("pip", "99.0", files={"pip/__main__.py": ""}))
    with served(found) as running:
        yield running


@pytest.fixture(scope="module")
def templates(environments, index, tmp_path_factory):
    """Return what makes an environment with the shim, of which every module is compiled."""

    @functools.cache
    def make(python, pip):
        if find_python(python) is None:
            pytest.skip(f"there is no Python {python} here")
        folder = tmp_path_factory.mktemp("seams")
        environment = environments.patched(python, pip).copied(folder / "environment")
        with PipCommands(environment) as commands:  # which tells what to import
            commands.pip("install", "--dry-run", "-i", index.url, "app", env=CUDA_12_8)
            commands.pip("uninstall", "-y", "absent")
        return environment

    return make


@pytest.fixture
def changed(templates, seam_pips, tmp_path):
    """Return what changes the first pip that can be changed so, and returns its environment."""

    def change(how, *arguments):
        for python, pip in seam_pips:
            environment = linked(templates(python, pip), tmp_path / f"environment-{pip}")
            if how(environment, *arguments):
                return environment
        pytest.skip(f"not in {seam_pips}: {arguments}")

    return change


def installed(environment):
    """Return what is installed, by name, with the version."""
    return dict(
        path.name.removesuffix(".dist-info").split("-")
        for path in environment.site_packages.glob("*.dist-info")
    )


def assert_works(environment, index, what):
    """Run the commands of this test; check what they have done and said."""
    before = installed(environment)
    options = ("-i", index.url)
    with PipCommands(environment) as commands:
        results = [
            commands.pip(*command, env=CUDA_12_8)
            for command in (
                ("install", *options, "plain"),
                ("uninstall", "-y", "plain", "always"),
                ("install", "--dry-run", "--no-variants", *options, "app"),
                ("install", "--no-compile", *options, "app"),
                ("install", "--upgrade", *options, "pip"),
            )
        ]
    plain, uninstalled, without, app, upgraded = results
    for done in results:
        assert "Traceback" not in done.text, (what, done)
        lines = (commands.said + done.err).splitlines()
        assert len([line for line in lines if line.startswith("pep-variants-shim: ")]) <= 1, done
    for done in (plain, uninstalled, upgraded):
        assert done.code == 0, (what, done)
        rest = [line for line in done.err.splitlines() if not line.startswith("pep-variants-shim")]
        assert not rest, (what, done)
    assert "Successfully installed always-1.0 plain-1.0\n" in plain.out
    assert "Successfully uninstalled plain-1.0\n" in uninstalled.out
    assert "Successfully installed pip-99.0\n" in upgraded.out
    if without.code:  # without the shim pip does not know the option
        assert "no such option: --no-variants" in without.err, (what, without)
    else:
        assert "Would install always-1.0 app-1.0\n" in without.out, (what, without)
    after = installed(environment)
    assert after.pop("pip") == "99.0"
    names = {name.replace("_", "-") for name in after.keys() - before.keys()}
    if app.code:
        assert not names, (what, app)
        assert "PEP_VARIANTS_SHIM=0" in app.err, (what, app)
        return "refused"
    module = (environment.site_packages / "app" / "__init__.py").read_text()
    expected = {"LABEL = 'cu128'\n": ON_GPU, "LABEL = None\n": PLAIN}
    assert names == expected[module], (what, app)
    return "variant" if names == ON_GPU else "plain"


@pytest.mark.parametrize("pips", [PIPS[::4], pytest.param(PIPS, marks=pytest.mark.nightly)])
def test_names_are_known(environments, pips):
    """What the shim's source touches is what is tested below."""
    defined = {name for pip in pips for name in pip_seams.defined(environments.pip_wheel(pip))}
    found = defined & pip_seams.touched()
    assert found <= {*SHARED, *PRIVATE}
    assert pips is not PIPS or found == {*SHARED, *PRIVATE}


def test_name_that_is_gone(changed, index, name):
    assert_works(changed(pip_seams.rename_in_pip, name), index, name)


def test_name_that_is_gone_with_a_catalogue(changed, index, catalog_name, tmp_path):
    """The catalogue is ignored, or what it says is installed."""
    (tmp_path / "plain.toml").write_text(pip_seams.ENTRY.format(place=index.url.rstrip("/")))
    shared = catalog_name in SHARED
    rename = pip_seams.rename_in_shim if shared else pip_seams.rename_in_pip
    environment = changed(rename, catalog_name)
    own = index.url.replace("127.0.0.1", "localhost")
    options = ("-i", own, "--variant-catalog", str(tmp_path / "plain.toml"))
    with PipCommands(environment) as commands:
        done = commands.pip("install", *options, "plain", env=CUDA_12_8)
    assert "Traceback" not in done.text, done
    assert done.code == 0, done
    assert installed(environment)["plain"] == "1.0", done
    expected = ("always-1.0 plain-1.0\n", "plain-1.0-cuda12\n")
    assert done.out.endswith(tuple(f"Successfully installed {item}" for item in expected)), done


def test_name_that_is_gone_for_the_shim(changed, index, shared_name):
    assert_works(changed(pip_seams.rename_in_shim, shared_name), index, shared_name)


def modules():
    tables = (
        ast.literal_eval(node.value)
        for node in ast.parse((SHIM / "hook.py").read_text("utf-8")).body
        if isinstance(node, ast.Assign) and node.targets[0].id in ("PATCHES", "EXTRAS")
    )
    return [name for table in tables for name in table]


def test_module_that_is_gone(changed, index, module):
    assert_works(changed(pip_seams.move_module, module), index, module)


def test_more_parameters(changed, index):
    """Which everything that is replaced passes through."""
    environment = changed(pip_seams.add_parameters, PRIVATE)
    assert assert_works(environment, index, "parameters") == "variant"
