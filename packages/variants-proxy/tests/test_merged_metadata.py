"""One METADATA for all wheels of a version: markers, and what they evaluate to everywhere."""

import hashlib
import json
from itertools import product
from urllib.parse import urljoin

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from packaging.requirements import Requirement
from upstream_server import document
from upstream_server import wheel as built_wheel
from worlds import KEY, Asked

from pep_variants._wheelfile.core_metadata import read_fields, requirements_of
from support.index import JSON, Answer
from variants_proxy._pages.merged_metadata import WheelMetadata, merge_metadata
from variants_proxy.urls import index_url

LIMIT = 2**20
LINUX, ARM, MAC = "manylinux_2_28_x86_64", "manylinux_2_28_aarch64", "macosx_11_0_arm64"
# Marker environments: system, CPU; several spellings of the CPU where uvs differ.
MACHINES = {
    LINUX: [("linux", "x86_64")],
    ARM: [("linux", "aarch64")],
    MAC: [("darwin", "arm64")],
    "macosx_10_13_x86_64": [("darwin", "x86_64")],
    "win_amd64": [("win32", "AMD64"), ("win32", "x86_64")],
    "win_arm64": [("win32", "ARM64")],
    "win32": [("win32", "x86")],
    "manylinux2014_i686": [("linux", "i686")],
    "musllinux_1_2_aarch64": [("linux", "aarch64")],
    "pyodide_2024_0_wasm32": [("emscripten", "wasm32")],
}


def wheel(tag, *requires, label=None, more=""):
    tag = tag if tag.count("-") >= 2 else f"cp312-cp312-{tag}"
    lines = "".join(f"Requires-Dist: {text}\n" for text in requires)
    text = f"Metadata-Version: 2.1\nName: app\nVersion: 1.0\n{more}{lines}\nThe text.\n"
    return WheelMetadata(f"app-1.0-{tag}.whl", label, text.encode())


def environment(system, machine, minor=12, extra=""):
    return {
        "sys_platform": system,
        "platform_machine": machine,
        "platform_system": {"linux": "Linux", "darwin": "Darwin"}.get(system, "Windows"),
        "python_version": f"3.{minor}",
        "python_full_version": f"3.{minor}.1",
        "implementation_name": "cpython",
        "extra": extra,
    }


def evaluated(requires, where):
    """Return what applies of *requires*, without markers."""
    found = set()
    for requirement in map(Requirement, requires):
        if requirement.marker is None or requirement.marker.evaluate(where):
            requirement.marker = None
            found.add(str(requirement))
    return found


def requirements(*wheels):
    merged = merge_metadata(wheels, LIMIT)
    assert merged is not None
    return requirements_of(merged)


ON_LINUX = "sys_platform == 'linux' and platform_machine == 'x86_64'"
NOT_LINUX = "sys_platform != 'linux' or platform_machine != 'x86_64'"

TABLE = {
    "one variant": (
        [wheel(LINUX, "a", "cuda", label="cu128"), wheel(MAC, "a"), wheel("win_amd64", "a")],
        ["a", f"cuda; {ON_LINUX}"],
    ),
    "dependencies of the plain wheels": (
        [wheel(LINUX, label="cu128"), wheel(ARM, "cpu"), wheel(MAC, "cpu")],
        [f"cpu; {NOT_LINUX}"],
    ),
    "markers of their own": (
        [
            wheel(
                LINUX,
                "x; python_version < '3.11' or extra == 'x'",
                "y[e] >=1,<2 ; extra == 'y'",
                "z @ https://example.org/z-1.whl;a ; extra == 'z'",
                "u @ https://example.org/u-1.whl",
                label="cu128",
            ),
            wheel(MAC),
        ],
        [
            f"x; (python_version < '3.11' or extra == 'x') and {ON_LINUX}",
            f"y[e] >=1,<2; extra == 'y' and {ON_LINUX}",
            f"z @ https://example.org/z-1.whl;a ; extra == 'z' and {ON_LINUX}",
            f"u @ https://example.org/u-1.whl ; {ON_LINUX}",
        ],
    ),
    "a pure wheel for other Pythons": (
        [wheel("py3-none-any", "pure"), wheel(f"cp312-cp312-{LINUX}", "cuda", label="cu128")],
        [
            "pure; sys_platform != 'linux' or platform_machine != 'x86_64' or "
            "python_version < '3.12' or python_version >= '3.13'",
            f"cuda; {ON_LINUX} and python_version == '3.12'",
        ],
    ),
    "Pythons that differ": (
        [
            wheel(f"cp311-cp311-{LINUX}", "old", "a"),
            wheel(f"cp312-cp312-{LINUX}", "new", "a", label="null"),
            wheel(f"cp313-cp313-{LINUX}", "new", "a", label="null"),
        ],
        [
            f"old; {ON_LINUX} and python_version < '3.12'",
            "a",
            "new; sys_platform != 'linux' or platform_machine != 'x86_64' or "
            "python_version >= '3.12'",
        ],
    ),
    "the limited API": (
        [
            wheel(f"cp312-cp312-{LINUX}", "own", label="cu128"),
            wheel(f"cp39-abi3-{LINUX}", "any", label="cu126"),
        ],
        [
            f"own; {ON_LINUX} and python_version == '3.12'",
            f"any; {ON_LINUX} and (python_version < '3.12' or python_version >= '3.13')",
        ],
    ),
    "PyPy decides nothing": (
        [
            wheel(f"cp310-cp310-{LINUX}", "c", label="cu128"),
            wheel(f"pp310-pypy310_pp73-{LINUX}", "p"),
        ],
        [f"c; {ON_LINUX}", f"p; {NOT_LINUX}"],
    ),
    "free threading is ignored": (
        [wheel(f"cp313-cp313t-{LINUX}", "t"), wheel(f"cp313-cp313-{LINUX}", "a", label="cu128")],
        [f"t; {NOT_LINUX}", f"a; {ON_LINUX}"],
    ),
    "the newest glibc decides, whatever musl has": (
        [
            wheel("musllinux_1_2_x86_64", "musl", label="null"),
            wheel("manylinux2014_x86_64", "old", label="cu126"),
            wheel(LINUX, "new", label="cu128"),
        ],
        [f"musl; {NOT_LINUX}", f"new; {ON_LINUX}"],
    ),
    "musl comes after a pure wheel": (
        [wheel("musllinux_1_2_x86_64", "musl"), wheel("py3-none-any", "pure")],
        ["pure"],
    ),
    "a Mac of its own before both": (
        [
            wheel("macosx_11_0_universal2", "both", label="null"),
            wheel(MAC, "arm", label="metal"),
            wheel(LINUX),
        ],
        [
            f"both; (sys_platform != 'darwin' or platform_machine != 'arm64') and ({NOT_LINUX})",
            "arm; sys_platform == 'darwin' and platform_machine == 'arm64'",
        ],
    ),
    "what cannot be read stays": (
        [wheel(LINUX, "a 'b'; c", "d", label="cu128"), wheel(MAC)],
        ["a 'b'; c", f"d; {ON_LINUX}"],
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_markers(name):
    wheels, expected = TABLE[name]
    assert list(requirements(*wheels)) == expected


def test_equal_dependencies_stay_as_they_are():
    assert merge_metadata([wheel(LINUX, "a", "b", label="cu128"), wheel(MAC, "b", "a")], 1) is None
    assert merge_metadata([wheel(LINUX, "a", label="cu128")], LIMIT) is None
    assert merge_metadata([wheel(LINUX, more="Summary: x\n"), wheel(MAC)], LIMIT) is None


def test_other_fields():
    gpu = wheel(
        LINUX,
        "cuda; extra == 'gpu'",
        label="cu128",
        more="Requires-Python: >=3.10\nProvides-Extra: gpu\nSummary: x\n",
    )
    plain = wheel(MAC, more="Provides-Extra: cpu\nRequires-Python: >=3.9\n")
    merged = merge_metadata([gpu, plain], LIMIT)
    assert merged is not None
    fields = read_fields(merged)
    assert fields["provides-extra"] == ["gpu", "cpu"]
    assert fields["requires-python"] == [">=3.9"]
    assert fields["summary"] == ["x"]
    assert merged.endswith(b"\n\nThe text.\n")
    assert merge_metadata([plain, gpu], LIMIT) != merged  # what remains is that of the first
    # One that asks for no version, or for one in words of its own, leaves it to the page.
    for other in ("", "Requires-Python: >=3.9,<4\n", "Requires-Python: what\n"):
        merged = merge_metadata([gpu, wheel(MAC, more=other)], LIMIT)
        assert merged is not None
        assert "requires-python" not in read_fields(merged)


def test_limits():
    wheels = [wheel(LINUX, "a", label="cu128"), wheel(MAC)]
    assert merge_metadata(wheels, 10) is None
    many = [wheel(f"manylinux_2_17_x{number}", "a") for number in range(100)]
    assert merge_metadata([*many, wheel(MAC)], LIMIT) is None
    tags = ".".join(f"cp3{number}" for number in range(500))
    assert merge_metadata([wheel(f"{tags}-abi3-{LINUX}", "a"), wheel(MAC)], LIMIT) is None
    texts = [f"a{number}" for number in range(30_000)]
    assert merge_metadata([wheel(LINUX, *texts), wheel(MAC, *texts, "b")], 2**24) is None
    each = [
        wheel(f"cp3{minor}-cp3{minor}-{platform}", *texts[first :: 7 + first])
        for first, (minor, platform) in enumerate(product(range(8, 15), MACHINES))
    ]
    assert merge_metadata(each, 2**24) is None
    assert merge_metadata([wheel(f"cp30.cp3999999-none-{LINUX}", "a"), wheel(MAC)], LIMIT) is None


TEXTS = st.sampled_from(
    [
        "a",
        "b>=1",
        "b>=2",
        "c; extra == 'x'",
        "d; python_version < '3.12' or extra == 'x'",
        "e; sys_platform == 'linux' and python_version >= '3.12'",
        "f; platform_machine != 'x86_64'",
    ]
)
REQUIRES = st.lists(TEXTS, max_size=4, unique=True)
LABELS = st.sampled_from([None, "null", "cu126", "cu128"])


@given(
    st.dictionaries(
        st.tuples(
            st.sampled_from(["cp310-cp310", "cp312-cp312"]),
            st.sampled_from(sorted(MACHINES.keys() - {MAC})),
        ),
        st.tuples(REQUIRES, LABELS),
        min_size=2,
    )
)
@example({("cp312-cp312", LINUX): (["a"], "cu128"), ("cp310-cp310", LINUX): ([], None)})
@settings(max_examples=30, deadline=None)
def test_every_wheel_has_its_own_dependencies(layout):
    # Linux on ARM has one libc only here: markers cannot tell two apart.
    if any(platform == ARM for _, platform in layout):
        layout = {key: v for key, v in layout.items() if not key[1].startswith("musllinux")}
    wheels = [
        wheel(f"{python}-{platform}", *requires, label=label)
        for (python, platform), (requires, label) in layout.items()
    ]
    data = merge_metadata(wheels, LIMIT)
    for (python, platform), item in zip(layout, wheels, strict=True):
        served = requirements_of(data or item.metadata)
        minor = int(python.split("-")[0][3:])
        for system, machine in MACHINES[platform]:
            for extra in ("", "x"):
                where = environment(system, machine, minor, extra)
                assert evaluated(served, where) == evaluated(requirements_of(item.metadata), where)


@pytest.mark.parametrize(
    ("lower", "higher"),
    [("1", "2"), ("9", "10"), ("1a", "1b"), ("1", "1a"), ("1a", "1ab"), ("1b", "2a"), ("", "0")],
)
def test_of_several_builds_the_highest_counts(lower, higher):
    def build(number):
        return "-".join(filter(None, (number, "py3-none-any")))

    for wheels in ([lower, higher], [higher, lower]):
        merged = merge_metadata(
            [wheel(build(number), f"of-{number or 'none'}") for number in wheels], LIMIT
        )
        assert merged is not None
        texts = tuple(requirements_of(merged))
        assert evaluated(texts, environment("linux", "x86_64")) == {f"of-{higher}"}


class TestServed:
    """Who gets it: uv and others that lock for several platforms, and in-place pages."""

    CUDA, PLAIN = f"app-1.0-0_cu128-cp312-cp312-{LINUX}.whl", f"app-1.0-cp312-cp312-{MAC}.whl"
    MERGED = ("a", f"cuda; {ON_LINUX}")

    @pytest.fixture
    def index(self, upstream):
        upstream.core_metadata = True
        add(upstream, LINUX, "-cu128", "a", "cuda")
        add(upstream, LINUX, "", "a")
        add(upstream, MAC, "", "a")
        return upstream

    def test_in_place(self, index, start):
        asked = Asked(start(index))
        assert required(asked.get, asked.files(), self.CUDA) == self.MERGED
        # uv does not read the METADATA of plain wheels: they have no build tag.
        assert asked.files()[self.PLAIN]["url"] == f"{index.root}/files/app/{self.PLAIN}"
        add(index, f"1-{MAC}", "", "a", "mac")
        name = f"app-1.0-1-cp312-cp312-{MAC}.whl"
        files = asked.files()
        assert files[name]["url"] == f".variant/-/{name}"
        assert asked.get(files[name]["url"]).status_code == 307
        cuda, plain = (set(required(asked.get, files, each)) for each in (self.CUDA, name))
        assert cuda == plain == {*self.MERGED, f"mac; {NOT_LINUX}"}

    def test_a_label_that_is_not_on_the_page(self, index, start):
        """It stands in for the one that is; and what a lock has is what counts."""
        add(index, LINUX, "-null", "a", "cpu")
        proxy = start(index)
        pages = [Asked(proxy, **item) for item in (
            {}, {"hashes": False}, {"locked": {"app": {"1.0": ("null",)}}})]  # fmt: skip
        for label, dependency in (("null", "cpu"), ("cu128", "cuda")):
            path = f".variant/{label}/{self.CUDA.replace('cu128', label)}.metadata"
            (found,) = {asked.get(path).content for asked in pages}
            assert requirements_of(found) == ("a", f"{dependency}; {ON_LINUX}")

    def test_variant_markers_are_evaluated_first(self, upstream, start):
        marked = ("cuda; 'nvidia' in variant_namespaces and python_version >= '3.9'", "a")
        upstream.core_metadata = True
        add(upstream, LINUX, "-cu128", *marked)
        add(upstream, MAC, "", *marked)
        asked = Asked(start(upstream))
        # The plain wheel has markers itself, so it comes from the proxy, too.
        for name in (self.CUDA, self.PLAIN):
            found = required(asked.get, asked.files(), name)
            assert set(found) == {"a", f"cuda; python_version >= '3.9' and {ON_LINUX}"}

    def test_a_wheel_that_cannot_be_read(self, index, start):
        for suffix in ("", ".metadata"):
            index.faults[f"/files/app/{self.PLAIN}{suffix}"] = Answer(404)
        asked = Asked(start(index))
        assert required(asked.get, asked.files(), self.CUDA) == ("a", "cuda")

    @pytest.mark.parametrize("auth", [None, (KEY, "v")])
    def test_who_asks_decides(self, index, start, auth):
        proxy = start(index)
        root = "/simple/app/" if auth else f"{index_url(KEY)}app/"
        for agent, expected in [
            *((agent, self.MERGED) for agent in ("uv/0.13.9", "poetry/2.5.1", "pdm/2.29.2")),
            ("pip/26", ("a", "cuda")),
            ("uv/0.13.9", self.MERGED),
        ]:
            headers = {"Accept": JSON, "User-Agent": agent}

            def get(path="", headers=headers, **options):
                return proxy.get(urljoin(root, path), headers=headers, auth=auth, **options)

            page = get()
            files = {file["filename"]: file for file in page.json()["files"]}
            assert required(get, files, self.CUDA) == expected
            assert "User-Agent" in page.headers["Vary"]
            if expected != self.MERGED:
                assert required(get, files, self.PLAIN) == ("a",)


def add(upstream, platform, label, *requires):
    """Add a wheel of ``app`` 1.0, *label* with its hyphen; *platform* may have a build tag."""
    build, _, platform = platform.rpartition("-")
    filename = f"app-1.0-{build and build + '-'}cp312-cp312-{platform}{label}.whl"
    variants = document("12.8")
    data = built_wheel(filename, *requires, variants=variants if label else None)
    upstream.add("app", filename, data)
    upstream.add("app", "app-1.0-variants.json", json.dumps(variants).encode())


def required(get, files, filename):
    """Return the dependencies of a file on a page, after a look at their hash."""
    file = files[filename]
    answer = get(f"{file['url']}.metadata", follow_redirects=True)
    answer.raise_for_status()
    if file["core-metadata"] is not True:
        digest = hashlib.sha256(answer.content).hexdigest()
        assert file["core-metadata"] == {"sha256": digest}
    return requirements_of(answer.content)
