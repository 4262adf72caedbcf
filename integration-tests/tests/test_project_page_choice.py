"""The script of project pages chooses as the engine does, and says why in the same words."""

import json
import re
from dataclasses import replace
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance import FOLDER
from conformance.runners.project_page import Script, embedded
from pep_variants.choose.abi import AbiDependency, supporting
from pep_variants.choose.explanation import why_not
from pep_variants.choose.phrases import why_chosen
from pep_variants.choose.preferences import Preferences
from pep_variants.choose.ranking import rank
from pep_variants.choose.selection import File, select
from pep_variants.detect.detector import Detector
from pep_variants.detect.known_machines import BY_NAME
from pep_variants.detect.machines import load_machine, machine_text
from pep_variants.detect.providers.cpu import known_cpus
from pep_variants.detect.providers.nvidia import NEWEST_DRIVER, OLDEST_DRIVER
from pep_variants.errors import MetadataError, PlatformFileError
from pep_variants.formats.platform_file import read_platform, write_platform
from pep_variants.formats.reader import read_metadata
from pep_variants.model.label import split_label
from pep_variants.model.platform import Platform, Support
from pep_variants.model.property import ABI_DEPENDENCY
from variants_cli.project_pages import render
from variants_cli.project_pages.choice_data import FILE
from variants_cli.project_pages.devices import INTEL, NVIDIA
from variants_cli.project_pages.machines import machine_tree, nvidia_features
from variants_index.pages import Page, PageFile
from variants_index.target import make_target

NAMES = (
    "a",
    "b1",
    "0",
    "10",
    "9",
    "constructor",
    "__proto__",
    "nvidia",
    "x86_64",
    "abi_dependency",
)
FEATURES = ("f", "10", "2", "__proto__", "cuda_version_lower_bound", "sm_arch", "level", "avx2")
VALUES = (
    "1",
    "10",
    "9",
    "2.9",
    "12.8",
    "12.6",
    "90_real",
    "80_real",
    "v3",
    "on",
    "__proto__",
    "x.",
)
LABELS = ("null", "126", "128", "a", "b.c", "__proto__", "constructor", "z_1")
TAGS = ("py3-none-any", "cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64",
        "cp312-cp312-manylinux_2_28_x86_64", "cp39-abi3-win_amd64",
        "cp313-cp313t-macosx_11_0_arm64", "cp312-cp312-macosx_11_0_universal2",
        "py2.py3-none-any")  # fmt: skip
MARKERS = ("", "platform_system == 'Linux'", "sys_platform == 'win32'", "python_version < '3.12'",
           "nonsense == '1'")  # fmt: skip
SCHEMAS = ("v0.0.1.json", "v0.0.3.json", "peps/825/v0.1.1.json", "v0.2.0.json", "v1.0.0.json")


@pytest.fixture(scope="module")
def script():
    script = Script()
    yield script
    script.close()


def _subset(items, least=0):
    return st.lists(st.sampled_from(items), unique=True, min_size=least, max_size=4)


_features = st.dictionaries(st.sampled_from(FEATURES), _subset(VALUES, 1), max_size=3)


@st.composite
def documents(draw):
    """Documents of every generation; some cannot be read."""
    schema = draw(st.sampled_from(SCHEMAS))
    namespaces = draw(_subset(NAMES[:-1], 1))
    usable = [*namespaces, NAMES[-1]]
    some = st.dictionaries(st.sampled_from(usable), _features.filter(bool), min_size=1, max_size=3)
    variants = draw(st.dictionaries(st.sampled_from(LABELS[1:]), some, max_size=6))
    if draw(st.booleans()):
        variants["null"] = {}
    tree = {
        "$schema": f"https://variants-schema.wheelnext.dev/{schema}",
        "default-priorities": {"namespace": namespaces},
        "variants": variants,
    }
    if schema.startswith("v0.0"):
        tree["default-priorities"]["feature"] = draw(
            st.dictionaries(st.sampled_from(namespaces), _subset(FEATURES), max_size=2)
        )
        tree["default-priorities"]["property"] = draw(
            st.dictionaries(st.sampled_from(namespaces), _features, max_size=2)
        )
        tree["static-properties"] = {}
    if "peps" not in schema:
        tree["providers"] = {}
        for namespace in namespaces:
            tree["providers"][namespace] = _provider(draw, schema, namespace, tree)
    return json.dumps(tree).encode()


def _provider(draw, schema, namespace, tree):
    provider = {"optional": True} if draw(st.integers(0, 4)) == 0 else {}
    known = {"nvidia": "nvidia-variant-provider>=0.0.1", "x86_64": "provider-variant-x86-64"}
    requirement = known.get(namespace, "third-party-provider")
    static = draw(_features)
    if draw(st.booleans()) and (static or schema == "v0.0.3.json"):
        if schema == "v0.0.3.json":
            tree["static-properties"][namespace] = static
            return {**provider, "requires": [], "install-time": False}
        if not schema.startswith("v0.0"):
            order = {"feature-order": list(static)} if len(static) > 1 else {}
            return {**provider, "static-properties": static, **order}
    marker = draw(st.sampled_from(MARKERS))
    provider["requires"] = [requirement]
    if namespace == "nvidia":
        provider["plugin-api"] = "nvidia_variant_provider.plugin:NvidiaVariantPlugin"
    if marker and schema.startswith("v0.0"):
        provider["enable-if"] = marker
    elif marker and "nonsense" not in marker:
        provider["requires"] = [f"{requirement}; {marker}"]
    return provider


platforms = st.dictionaries(st.sampled_from(NAMES[:-1]), _features, max_size=5)
files = st.lists(
    st.tuples(
        st.sampled_from(("", "", "1", "2b")),
        st.sampled_from(TAGS),
        st.sampled_from(("", *LABELS, "00000000")),
    ),
    unique=True,
    min_size=1,
    max_size=10,
)
SYSTEMS = ("linux-x86_64", "windows-x86_64", "macos-arm64")


def _filename(build, tags, label):
    return "-".join(filter(None, ("gpu-1.0", build, tags, label))) + ".whl"


def page_of(names, document):
    """Return the data on the page of these files, and the files in the order of the page."""
    listing = Page("gpu", tuple(PageFile(name, name) for name in (*names, "gpu-1.0-variants.json")))
    body = render(listing, {"gpu-1.0-variants.json": document})
    shown = [name for name in re.findall(rb'<a href="([^"]+)"', body) if name.endswith(b".whl")]
    return {**embedded(body), "machines": None}, [name.decode() for name in shown]


def place_of(data, system, python):
    systems = [name for name, _ in data["systems"]]
    if system not in systems:
        return None
    return systems.index(system) * len(data["pythons"]) + data["pythons"].index(python)


def tree_of(features):
    return [[name, list(values)] for name, values in features.items()]


def platform_of(machine):
    return Platform(
        {name: Support({k: tuple(v) for k, v in found.items()}) for name, found in machine.items()}
    )


def built_against(platform, metadata, versions):
    """Return *platform* with the releases of other projects that agree with *versions*."""
    found = supporting(platform, metadata)
    releases = {
        feature: tuple(value for value in values if _agree(value, versions.get(feature)))
        for feature, values in found.support(ABI_DEPENDENCY).features.items()
    }
    support = Support({feature: values for feature, values in releases.items() if values})
    return replace(platform, namespaces={**platform.namespaces, ABI_DEPENDENCY: support})


def _agree(value, version):
    one, other = (AbiDependency("other", (release,)) for release in (value, version or "0"))
    return version is None or one.allows(version) or other.allows(value)


def expected(metadata, machine, names, target, *, is_file, versions=MappingProxyType({})):
    """Return what the engine makes of it: verdicts and files."""
    if is_file:
        platform = Platform(platform_of(machine).namespaces, FILE)
        detector = Detector(environment=target.environment, platform=platform)
    else:
        detector = Detector(environment=target.environment, detected=platform_of(machine))
    platform = built_against(detector.platform(metadata), metadata, versions)
    ranking = rank(metadata, platform)
    selection = select(
        [File(name, "index", place) for place, name in enumerate(names)],
        metadata=lambda _: metadata,
        platform=lambda found: built_against(detector.platform(found), found, versions),
        preferences=Preferences(),
        project="gpu",
        tags=target.tags,
    )
    return {
        "fitting": [
            {"label": item.label, "why": why_chosen(item.supported) or "always fits"}
            for item in ranking.ranked
        ],
        "rejected": [
            {"label": label, "why": list(why_not(ranking, label))}
            for label in ranking.rejected_labels
        ],
        "files": [file.filename for file in selection.files],
    }


def found(script, data, machine, shown, target, *, is_file, versions=MappingProxyType({})):
    """Return the same from the script."""
    given = {"target": target, "versions": list(versions.items())}
    if is_file:
        text = write_platform(platform_of(machine), "test")
        answer = script.ask(data=data, file=text, **given)
    else:
        more = [[namespace, tree_of(features)] for namespace, features in machine.items()]
        answer = script.ask(data=data, facts={"more": more}, **given)
    assert "error" not in answer, answer
    return {
        "fitting": [{"label": it["label"], "why": it["why"]} for it in answer["fitting"]],
        "rejected": [{"label": it["label"], "why": it["why"]} for it in answer["rejected"]],
        "files": [shown[item["place"]] for item in answer["files"]],
    }


@settings(max_examples=200, deadline=None)
@given(documents(), platforms, files, st.sampled_from(SYSTEMS), st.booleans(), st.integers(0, 3))
def test_random(script, document, machine, named, system, is_file, number):
    names = [_filename(*parts) for parts in named]
    if not any(split_label(name)[1] for name in names):
        names.append("gpu-1.0-py3-none-any-null.whl")
    data, shown = page_of(names, document)
    try:
        metadata = read_metadata(document, "gpu-1.0-variants.json")
    except MetadataError as error:
        metadata, problem = None, str(error)
    if metadata is None:
        assert data["releases"][0]["problem"] == problem
        return
    target = make_target(
        python_version="3.12", platforms=[system], implementation="cpython", abi="cp312"
    )
    place = place_of(data, system, "3.12")
    # Of every project that variants are built against, one of the releases, or any.
    releases = supporting(Platform(), metadata).support(ABI_DEPENDENCY).features
    versions = {name: found[number] for name, found in releases.items() if number < len(found)}
    wanted = expected(metadata, machine, names, target, is_file=is_file, versions=versions)
    if place is None:  # no wheel is for that system
        assert wanted["files"] == []
        return
    given_too = {"is_file": is_file, "versions": versions}
    assert found(script, data, machine, shown, place, **given_too) == wanted


def _published():
    """Yield published documents with more than two variants."""
    for path in sorted((FOLDER / "field" / "documents").glob("*-variants.json")):
        if len(json.loads(path.read_bytes())["variants"]) > 2:
            yield pytest.param(path, id=path.stem)


@pytest.mark.parametrize("path", [*_published()])
def test_published_metadata(script, path):
    document = path.read_bytes()
    metadata = read_metadata(document, "gpu-1.0-variants.json")
    names = [f"gpu-1.0-py3-none-any-{label}.whl" for label in metadata.variants]
    data, shown = page_of(names, document)
    target = make_target(
        python_version="3.12", platforms=["linux"], implementation="cpython", abi="cp312"
    )
    place = place_of(data, "linux-x86_64", "3.12")
    for platform in map(load_machine, BY_NAME):
        machine = {name: support.features for name, support in platform.namespaces.items()}
        for is_file in (True, False):
            wanted = expected(metadata, machine, names, target, is_file=is_file)
            assert found(script, data, machine, shown, place, is_file=is_file) == wanted


class TestMachines:
    """What the form derives is what the built-in providers answer."""

    def ask(self, script, facts):
        return script.ask(data={"machines": machine_tree()}, facts=facts)["namespaces"]

    def test_named(self, script):
        assert [name for name, _, _ in machine_tree()["named"]] == sorted(BY_NAME)
        for name, title, facts in machine_tree()["named"]:
            namespaces = load_machine(name).namespaces
            wanted = {n: tree_of(s.features) for n, s in namespaces.items() if s.features}
            assert dict(self.ask(script, facts)) == wanted
            assert title
            assert facts["system"]

    def test_drivers(self, script):
        for major in range(OLDEST_DRIVER[0], NEWEST_DRIVER[0] + 1):
            for minor in range(NEWEST_DRIVER[1] + 1):
                driver = f"{major}.{minor}"
                wanted = [["nvidia", tree_of(nvidia_features(driver, "9.0"))]]
                assert self.ask(script, {"nvidia": [driver, "9.0"]}) == wanted

    def test_capabilities(self, script):
        for capability in NVIDIA:
            wanted = [["nvidia", tree_of(nvidia_features("12.8", capability))]]
            assert self.ask(script, {"nvidia": ["12.8", capability]}) == wanted

    @pytest.mark.parametrize("driver", ["10.2", "16.0", "12", "", "x"])
    def test_unknown_driver(self, script, driver):
        assert self.ask(script, {"nvidia": [driver, "9.0"]}) == []

    def test_cpus(self, script):
        from pep_variants.detect.providers.aarch64 import AArch64Provider
        from pep_variants.detect.providers.x86_64 import X8664Provider

        providers = {"x86_64": X8664Provider, "aarch64": AArch64Provider}
        number = 0
        for namespace, _, _, cpus in machine_tree()["families"]:
            known = {cpu.name: cpu for cpu in known_cpus(namespace)}
            for name, _, bits, _ in cpus:
                features = providers[namespace](lambda _, cpu=known[name]: cpu).supported()
                assert self.ask(script, {"cpu": [namespace, bits]}) == [
                    [namespace, tree_of(features)]
                ]
                number += 1
        assert number > 25

    def test_intel(self):
        for ip, _, values in machine_tree()["intel"]:
            assert values[0] == ip
            assert ip in INTEL


class TestPlatformFiles:
    """The reader of platform files in the script, beside the engine's."""

    def ask(self, script, text):
        return script.ask(data={}, file=text)

    def test_named(self, script):
        for machine in BY_NAME:
            namespaces = load_machine(machine).namespaces
            wanted = [[name, tree_of(support.features)] for name, support in namespaces.items()]
            assert self.ask(script, machine_text(machine, "a test")) == {"namespaces": wanted}

    @settings(max_examples=100, deadline=None)
    @given(platforms, st.text(max_size=20))
    def test_written(self, script, machine, created_by):
        text = write_platform(platform_of(machine), created_by)
        wanted = [[name, tree_of(features)] for name, features in machine.items()]
        assert self.ask(script, text) == {"namespaces": wanted}

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "[other]\nx = 1\n",
            "[metadata]\nversion = '1.0'\n",
            "[metadata]\nversion = 1\n",
            "[[provider]]\n",
            "[[provider]]\nnamespace = 'A'\n",
            "[[provider]]\nnamespace = 1\n",
            "[[provider]]\nnamespace = 'a'\n[[provider]]\nnamespace = 'a'\n",
            "[[provider]]\nnamespace = 'a'\nnamespace = 'b'\n",
            "[[provider]]\nnamespace = 'a'\nproperties = 1\n",
            "[[provider]]\nnamespace = 'a'\n[provider.properties]\nf = 'x'\n",
            "[[provider]]\nnamespace = 'a'\n[provider.properties]\nf = ['x', 'x']\n",
            "[[provider]]\nnamespace = 'a'\n[provider.properties]\nf = ['X']\n",
            "[[provider]]\nnamespace = 'a'\n[provider.properties]\nf = [1]\n",
            "[[provider]]\nnamespace = 'a'\n[provider.properties]\nF = ['x']\n",
            "[[provider]]\nnamespace = 'a'\n[provider.properties]\nf = ['x'\n",
            "[[provider]]\nnamespace = 'a'\n[provider.properties]\nf = ['x' 'y']\n",
            "[[provider]]\nnamespace = 'a'\n[provider.properties]\nf = ['x']\nf = ['y']\n",
            "[[provider]]\nnamespace = 'a'\n[provider.properties]\n[provider.properties]\n",
            "[[provider]]\nnamespace = 'a' x\n",
            "[[provider]\nnamespace = 'a'\n",
            "[provider]\nnamespace = 'a'\n",
            "[metadata]\n[metadata]\n",
            '[metadata]\nx = "\\q"\n',
            '[metadata]\nx = "\\ud800"\n',
            "[metadata]\nx = 'a\n",
            "[metadata]\n= 1\n",
            "metadata\n",
            "metadata = 1\n",
            "provider = 1\n",
            "x = [\n",
        ],
    )
    def test_refused(self, script, text):
        with pytest.raises(PlatformFileError):
            read_platform(text, "machine.toml")
        assert "error" in self.ask(script, text)

    @pytest.mark.parametrize(
        "text",
        [
            "[metadata]",
            "[metadata]\r\nversion = '0.9'\r\n# comment\r\n",
            "[ metadata ] # comment\nversion='0.1'# comment\n",
            '[[ provider ]]\nnamespace = "a"\nresolved = []\n',
            "[[provider]]\n'namespace' = 'a'\nproperties.f = [ 'x', # one\n\n 'y',\n ]\n",
            '[[provider]]\nnamespace = \'a\'\n[provider.properties]\n"f" = ["\\u0078"]\ng = []\n',
            '[x.y]\n[x]\nz = true\nn = -1\n[metadata]\ncreated-by = "\\"\\\\\\t"\n',
            "[target]\npython-version = '3.12'\n[[provider]]\nnamespace = '0'\n",
        ],
    )
    def test_read(self, script, text):
        namespaces = read_platform(text, "machine.toml").namespaces
        wanted = [[name, tree_of(support.features)] for name, support in namespaces.items()]
        assert self.ask(script, text) == {"namespaces": wanted}
