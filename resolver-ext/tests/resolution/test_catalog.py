"""Existing builds as variants: kinds of entries, places that fail, versions, coherence."""

import hashlib
import json
import zipfile
from dataclasses import replace
from urllib.parse import quote

import pytest
from world import cuda, target

from pep_variants.sources import Sources
from resolvelib_variants.resolution import NoSolution, SameFiles, read_file
from support.index_server import Resource, served
from support.wheels import Wheel
from variants_index.downloads import Download, download_files
from variants_index.errors import BadResponse

LINUX = "cp312-cp312-manylinux_2_28_x86_64"
MACOS = "cp312-none-macosx_11_0_arm64"

NEW_GPU = """
[[provider]]
namespace = "nvidia"
[provider.properties]
cuda_version_lower_bound = ["13.0", "12.0"]
sm_arch = ["90_real"]
"""
OLD_GPU = NEW_GPU.replace("90_real", "60_real")
NO_GPU = '[[provider]]\nnamespace = "x86_64"\n[provider.properties]\nlevel = ["v3"]\n'

HEAD = """
catalog-version = "1"
[project]
name = "{name}"
documentation = "https://docs.example/{name}"
default-priorities.namespace = ["nvidia", "priority"]
static-properties.priority.order = ["1", "2", "3"]
"""
CU130 = [
    "nvidia :: cuda_version_lower_bound :: 13.0",
    "nvidia :: sm_arch :: 90_real",
    "priority :: order :: 1",
]
CU126 = [
    "nvidia :: cuda_version_lower_bound :: 12.0",
    "nvidia :: sm_arch :: 60_real",
    "nvidia :: sm_arch :: 90_real",
    "priority :: order :: 2",
]


def entry(name, *variants, head=""):
    """Return the TOML of an entry; *variants* are mappings."""
    text = HEAD.format(name=name) + head
    for variant in variants:
        text += "[[variant]]\n"
        text += "".join(f"{key} = {value!r}\n" for key, value in variant.items())
    return text


def torch(url, name="torch", head=""):
    """Return the entry of a project that is published as torch is."""
    return entry(
        name,
        {"label": "cuda13.0", "index": f"{url}/whl/cu130", "local": "cu130", "properties": CU130},
        {"label": "cuda12.6", "index": f"{url}/whl/cu126", "local": "cu126", "properties": CU126},
        {"label": "null", "index": f"{url}/whl/cpu", "local": ["cpu", ""]},
        head=head,
    )


class Publisher:
    """The host of builds, with pages as PyTorch's: HTML, ``+`` percent-encoded.

    Attributes:
        catalog: directory of entries.
    """

    def __init__(self, server, world):
        self.server = server
        self.world = world
        self.catalog = world.folder / "catalog"
        self.catalog.mkdir()
        self.hashes = {}

    def describe(self, name, text):
        (self.catalog / f"{name}.toml").write_text(text)
        return self

    def place(self, place, name, *wheels, hashes=True, host="", core_metadata=True):
        """Put *wheels* on the page of a project in a place."""
        links = []
        for wheel in wheels:
            body = wheel.build()
            path = f"/whl/{place}/{quote(wheel.filename)}"
            self.server.resources[path] = Resource(body, ranges=True)
            digest = self.hashes[wheel.filename] = hashlib.sha256(body).hexdigest()
            fragment = f"#sha256={digest}" if hashes else ""
            more = ""
            if core_metadata:
                self.server.resources[f"{path}.metadata"] = Resource(wheel.metadata())
                more = ' data-core-metadata="true"'
            links.append(f'<a href="{host}{path}{fragment}"{more}>{wheel.filename}</a><br>')
        page = f"<!DOCTYPE html><html><body><h1>Links</h1>{''.join(links)}</body></html>"
        self.server.resources[f"/whl/{place}/{name}/"] = Resource(page.encode(), kind="text/html")
        return self

    def torch(self, *versions, name="torch", places=("cu130", "cu126", "cpu"), **options):
        """Publish a project as torch is, in *places*."""
        for place in places:
            wheels = [
                Wheel(name, f"{version}+{place}", tag=LINUX, **options) for version in versions
            ]
            if place == "cpu":
                wheels += [Wheel(name, version, tag=MACOS, **options) for version in versions]
            self.place(place, name, *wheels)
        self.world.add(*(Wheel(name, version, tag=LINUX, **options) for version in versions))
        return self

    def resolve(self, *requirements, on=None, **options):
        given = {"variant-catalog": str(self.catalog), **options.pop("options", {})}
        return self.world.resolve(*requirements, on=on or target(NEW_GPU), options=given, **options)

    def names(self, *requirements, **options):
        """Resolve and return what is chosen: files, and labels."""
        found = self.resolve(*requirements, **options)
        return [f"{item.filename} {item.label}" for item in found.packages]


@pytest.fixture
def publisher(world):
    with served() as server:
        yield Publisher(server, world)


@pytest.fixture
def torches(publisher):
    return publisher.describe("torch", torch(publisher.server.url)).torch("2.9.0")


def wheel(version, tag=LINUX, name="torch"):
    return f"{name}-{version}-{tag}.whl"


class TestPlaces:
    def test_the_build_that_fits(self, torches):
        version, label = "2.9.0+cu126", "cuda12.6"
        (package,) = torches.resolve("torch", on=target(OLD_GPU)).packages
        assert package.filename == wheel(version)
        assert package.label == label
        assert str(package.version) == version
        place = version.partition("+")[2]
        file = f"torch-2.9.0%2B{place}-{LINUX}.whl"
        tree = package.to_tree()
        assert tree["url"] == f"{torches.server.url}/whl/{place}/{file}"
        assert tree["index"] == f"{torches.server.url}/whl/{place}/torch/"
        assert tree["catalog"] == str(torches.catalog / "torch.toml")
        assert tree["hashes"] == {"sha256": torches.hashes[wheel(version)]}

    @pytest.mark.parametrize("options", [{"no-variants": True}, {"variant": ["torch="]}])
    def test_variants_that_are_not_wanted(self, torches, options):
        assert torches.names("torch", options=options) == [f"{wheel('2.9.0')} None"]
        assert torches.server.requests == []

    def test_a_place_that_is_an_index_of_the_user(self, torches):
        """The user has chosen that build."""
        index = f"{torches.server.url}/whl/cu126"
        found = torches.names("torch", sources=Sources(index_url=index))
        assert found == [f"{wheel('2.9.0+cu126')} None"]

    @pytest.mark.parametrize(
        ("wanted", "expected"),
        [
            ("torch==2.9.0", "2.9.0+cu130"),
            ("torch==2.9.0+cu126", "2.9.0+cu126"),
            ("torch!=2.9.0+cu130", "2.9.0+cu126"),
            ("torch===2.9.0", "2.9.0"),
            ("torch==2.8.0", "2.8.0+cu130"),
        ],
    )
    def test_versions(self, publisher, wanted, expected):
        publisher.describe("torch", torch(publisher.server.url)).torch("2.8.0", "2.9.0")
        assert [item.filename for item in publisher.resolve(wanted).packages] == [wheel(expected)]

    def test_requirements_of_a_build_count(self, publisher):
        publisher.describe("torch", torch(publisher.server.url))
        publisher.torch("2.9.0", requires=("cpu-only",))
        cuda = Wheel("torch", "2.9.0+cu130", tag=LINUX, requires=("cuda-runtime",))
        publisher.place("cu130", "torch", cuda)
        publisher.world.add(Wheel("cuda-runtime", "1.0"), Wheel("cpu-only", "1.0"))
        assert publisher.names("torch") == [
            "cuda_runtime-1.0-py3-none-any.whl None",
            f"{wheel('2.9.0+cu130')} cuda13.0",
        ]

    def test_files_that_are_redirected_to_another_host(self, torches, tmp_path):
        cuda = Wheel("torch", "2.9.0+cu130", tag=LINUX, requires=("runtime",))
        torches.place("cu130", "torch", cuda, core_metadata=False)
        torches.world.add(Wheel("runtime", "1.0"))
        with served() as other:
            path = f"/whl/cu130/{quote(cuda.filename)}"
            other.resources[path] = torches.server.resources[path]
            torches.server.resources[path] = Resource.redirect(f"{other.url}{path}")
            package = torches.resolve("torch").by_name["torch"]
            assert package.requires == ("runtime",)
            assert package.file.url == f"{torches.server.url}{path}"
            wanted = Download(
                package.filename, package.file.url, package.file.hashes, None, package.metadata
            )
            with torches.world.resolver() as resolver:
                resolver.session.add_index(torches.server.url)
                (found,) = download_files(resolver.session, [wanted], tmp_path)
        assert found.name == cuda.filename
        assert found.read_bytes() == cuda.build()

    def test_a_page_of_links(self, publisher):
        url = f"{publisher.server.url}/torch-2.9.html"
        cuda = {"label": "cuda13.0", "links": url, "properties": CU130}
        publisher.describe("pyg", entry("pyg", cuda))
        publisher.place("x", "x", Wheel("pyg", "1.0+pt29", tag=LINUX), Wheel("other", "1.0"))
        page = publisher.server.resources.pop("/whl/x/x/")
        publisher.server.resources["/torch-2.9.html"] = page
        assert publisher.names("pyg") == [f"{wheel('1.0+pt29', name='pyg')} cuda13.0"]

    def test_two_builds_with_one_label(self, publisher):
        publisher.describe("torch", torch(publisher.server.url))
        cpu = [Wheel("torch", version, tag=LINUX) for version in ("2.9.0", "2.9.0+cpu")]
        publisher.torch("2.9.0", places=("cu130", "cu126")).place("cpu", "torch", *cpu)
        assert publisher.names("torch", on=target(NO_GPU)) == [f"{wheel('2.9.0+cpu')} null"]


class TestHashes:
    """Hashes of requirements files are those of published files."""

    def resolve(self, publisher, *lines):
        path = publisher.world.folder / "requirements.txt"
        path.write_text("".join(f"{line}\n" for line in lines))
        given = read_file(path, {})
        return publisher.resolve(requirement_set=given)

    @pytest.mark.parametrize("on_page", [True, False])
    def test_the_build_with_that_hash(self, torches, on_page):
        cuda = Wheel("torch", "2.9.0+cu130", tag=LINUX)
        if not on_page:
            torches.place("cu130", "torch", cuda, hashes=False)
        version, label = ("cu126", "cuda12.6") if on_page else ("cu130", "cuda13.0")
        digest = torches.hashes[wheel(f"2.9.0+{version}")]
        (package,) = self.resolve(torches, f"torch==2.9.0 --hash=sha256:{digest}").packages
        assert package.label == label
        with pytest.raises(NoSolution if on_page else BadResponse) as caught:
            self.resolve(torches, f"torch==2.9.0 --hash=sha256:{'0' * 64}")
        if on_page:
            assert "has another hash than the requirements allow" in str(caught.value.details)


class TestFailingPlaces:
    @pytest.mark.parametrize(
        ("resource", "reason"),
        [
            (Resource(b"", 403), "403"),
            (Resource(b"", 404), "404"),
            (Resource(b"<html><form>log in</form></html>", kind="text/html"), "lists no wheels"),
        ],
    )
    def test_its_variants_are_lost(self, torches, resource, reason):
        torches.server.resources["/whl/cu130/torch/"] = resource
        resolution = torches.resolve("torch")
        assert [item.filename for item in resolution.packages] == [wheel("2.9.0+cu126")]
        (warning,) = resolution.warnings
        host = torches.server.url
        assert warning.startswith(f"torch: variant cuda13.0 from {host} cannot be had: ")
        assert reason in warning
        assert warning.endswith(f"(for a mirror: --variant-catalog-mirror {host}=URL)")
        assert [str(item) for item in resolution.unavailable] == [warning]

    def test_no_server_of_several_projects(self, publisher):
        """C7: a host is named once."""
        for name in ("torch", "vision"):
            publisher.describe(name, torch("http://127.0.0.1:9", name))
            publisher.world.add(Wheel(name, "1.0", tag=LINUX))
        (warning,) = publisher.resolve("torch", "vision").warnings
        assert warning.startswith("torch, vision: variants cuda13.0, cuda12.6, null from ")


class TestOtherNames:
    """Builds that their publisher has under another name."""

    @pytest.fixture
    def cupy(self, publisher):
        cuda13 = {"label": "cuda13", "requires": ["cupy-cuda13x=={version}"], "properties": CU130}
        cuda12 = {"label": "cuda12", "requires": ["cupy-cuda12x=={version}"], "properties": CU126}
        publisher.describe("cupy", entry("cupy", cuda13, cuda12))
        for name in ("cupy-cuda12x", "cupy-cuda13x"):
            ctk = ("numpy", "toolkit; extra == 'ctk'")
            wheel = Wheel(name, "14.2.0", tag=LINUX, requires=ctk, extras=("ctk",))
            publisher.world.add(wheel)
        publisher.world.add(Wheel("cupy-cuda13x", "14.3.0", tag=MACOS), Wheel("numpy", "2.0"))
        publisher.world.add(("cupy", "cupy-14.2.0.tar.gz", b""), Wheel("toolkit", "13.0"))
        return publisher

    def test_what_is_said_of_it(self, cupy):
        package = cupy.resolve("cupy").by_name["cupy"]
        tree = package.to_tree()
        filename = f"cupy_cuda13x-14.2.0-{LINUX}.whl"
        server = cupy.world.server
        assert (tree["name"], tree["version"], tree["label"]) == ("cupy", "14.2.0", "cuda13")
        assert tree["published_as"] == "cupy-cuda13x==14.2.0"
        assert (tree["filename"], tree["url"]) == (filename, f"{server.url}/files/{filename}")
        assert tree["index"] == f"{server.simple}cupy-cuda13x/"
        assert tree["requires"] == ["numpy", "toolkit; extra == 'ctk'"]
        assert tree["why"].endswith("; published as cupy-cuda13x")
        body = cupy.world.files["cupy-cuda13x"][filename]["body"]
        assert tree["hashes"] == {"sha256": hashlib.sha256(body).hexdigest()}

    def test_its_file(self, cupy, tmp_path):
        package = cupy.resolve("cupy").by_name["cupy"]
        file, candidate = package.file, package.candidate
        wanted = Download(
            candidate.installed_filename,
            file.url,
            file.hashes,
            None,
            package.metadata,
            candidate.rewritten,
        )
        with cupy.world.resolver() as resolver:
            (path,) = download_files(resolver.session, [wanted], tmp_path)
            wrong = replace(wanted, hashes={"sha256": "0" * 64})
            with pytest.raises(BadResponse, match="sha256"):
                download_files(resolver.session, [wrong], tmp_path / "wrong")
        assert path.name == f"cupy-14.2.0-{LINUX}.whl"
        with zipfile.ZipFile(path) as archive:
            info = "cupy-14.2.0.dist-info"
            assert b"Name: cupy\n" in archive.read(f"{info}/METADATA")
            origin = json.loads(archive.read(f"{info}/variant_origin.json"))
            assert f"{info}/variant_origin.json" in archive.read(f"{info}/RECORD").decode()
        assert origin == {
            "name": "cupy-cuda13x", "version": "14.2.0", "url": file.url, "hashes": file.hashes,
        }  # fmt: skip
        assert list((tmp_path / "wrong").iterdir()) == []

    def test_a_project_that_is_not_there(self, cupy):
        del cupy.world.files["cupy-cuda13x"]
        resolution = cupy.resolve("cupy")
        assert resolution.by_name["cupy"].label == "cuda12"
        (warning,) = resolution.warnings
        assert warning.startswith("cupy: cupy-cuda13x, which has builds of it, is not found on ")
        assert resolution.unavailable == ()

    def test_a_file_of_another_project(self, cupy):
        name = f"cupy_cuda13x-14.2.0-{LINUX}.whl"
        cupy.world.server.resources[f"/files/{name}.metadata"] = Resource(
            Wheel("evil", "14.2.0").metadata()
        )
        cupy.world.files["cupy-cuda13x"][name]["core-metadata"] = True
        with pytest.raises(NoSolution) as caught:
            cupy.resolve("cupy")
        assert any("METADATA is of 'evil'" in text for text in caught.value.details)

    def test_hashes_exclude_them(self, cupy, tmp_path):
        """C16: the given hashes are those of the project's own files."""
        plain = Wheel("cupy", "14.2.0", tag=LINUX)
        cupy.world.add(plain)
        digest = hashlib.sha256(plain.build()).hexdigest()
        path = tmp_path / "requirements.txt"
        path.write_text(f"cupy==14.2.0 --hash=sha256:{digest}\n")
        resolution = cupy.resolve(requirement_set=read_file(path, {}))
        assert [item.filename for item in resolution.packages] == [plain.filename]
        (warning,) = resolution.warnings
        assert warning == (
            "cupy 14.2.0: builds of the catalogue that are rewritten when they are installed are "
            "left out, as hashes are given"
        )
        for body in (item["body"] for item in cupy.world.files["cupy-cuda13x"].values()):
            path.write_text(f"cupy==14.2.0 --hash=sha256:{hashlib.sha256(body).hexdigest()}\n")
            with pytest.raises(NoSolution):
                cupy.resolve(requirement_set=read_file(path, {}))


class TestBothNames:
    """C14: a project is required, and a build of it under its publisher's name."""

    @pytest.fixture
    def cudf(self, publisher):
        builds = [
            {"label": f"cuda{n}", "requires": [f"cupy-cuda{n}x=={{version}}"], "properties": of}
            for n, of in ((13, CU130), (12, CU126))
        ]
        publisher.describe("cupy", entry("cupy", *builds))
        for n in (12, 13):
            for version in ("13.6.0", "14.2.0"):
                name = f"cupy-cuda{n}x"
                ctk = ("toolkit; extra == 'ctk'",)
                publisher.world.add(
                    Wheel(name, version, tag=LINUX, requires=ctk, extras=("ctk",)),
                    Wheel("cupy", version, tag=LINUX, extras=("ctk",)),
                )
        publisher.world.add(
            Wheel("cudf", "25.12", requires=("cupy-cuda12x[ctk]>=13",)),
            Wheel("other", "1.0", requires=("cupy>=12",)),
            Wheel("older", "1.0", requires=("cupy<14",)),
            Wheel("ancient", "1.0", requires=("cupy<13",)),
            Wheel("toolkit", "12.9"),
        )
        return publisher

    def chosen(self, publisher, *requirements, **options):
        resolution = publisher.resolve(*requirements, **options)
        return [f"{item.name} {item.version}" for item in resolution.packages]

    @pytest.mark.parametrize("options", [{}, {"options": {"variant": ["cupy=cuda13"]}}])
    def test_the_build_stands_for_the_project(self, cudf, options):
        """A label of the project says nothing of the build."""
        found = cudf.resolve("other", "cudf", **options)
        named = [f"{item.name} {item.version}" for item in found.packages]
        assert named == ["cudf 25.12", "cupy-cuda12x 14.2.0", "other 1.0", "toolkit 12.9"]
        assert (
            "cupy is not installed beside cupy-cuda12x, which has the same files and stands for it"
        ) in found.warnings
        assert found.provided == {"cupy": "cupy-cuda12x"}
        assert found.by_name["other"].depends == ("cupy-cuda12x",)

    def test_version_and_extras_are_what_is_asked_of_the_project(self, cudf):
        found = self.chosen(cudf, "cudf", "older")
        assert found == ["cudf 25.12", "cupy-cuda12x 13.6.0", "older 1.0", "toolkit 12.9"]
        found = self.chosen(cudf, "cupy-cuda13x", "cupy[ctk]", constraints=["cupy<14"])
        assert found == ["cupy-cuda13x 13.6.0", "toolkit 12.9"]

    def test_no_version_is_both(self, cudf):
        cudf.world.add(Wheel("cupy", "12.0", tag=LINUX))
        with pytest.raises(SameFiles) as caught:
            cudf.resolve("cudf", "ancient")
        message = str(caught.value)
        assert message.startswith("cupy and cupy-cuda12x are required, which have the same files")
        assert any("ancient 1.0 needs cupy<13" in text for text in caught.value.details)

    def test_what_the_user_asked_for(self, cudf):
        with pytest.raises(SameFiles) as caught:
            cudf.resolve("cupy-cuda12x==13.6.0", "cupy>=14")
        assert caught.value.details == (
            "you asked for cupy-cuda12x==13.6.0", "you asked for cupy>=14",
        )  # fmt: skip

    @pytest.mark.parametrize(
        ("wanted", "message"),
        [
            ("cupy-cuda13x", "cupy and cupy-cuda13x and cupy-cuda12x are required"),
            (f"cupy @ {{}}/files/cupy-14.2.0-{LINUX}.whl", "leave out http"),
        ],
    )
    def test_what_the_build_cannot_stand_for(self, cudf, wanted, message):
        cudf.world.publish()
        with pytest.raises(SameFiles, match=message):
            cudf.resolve("cudf", "cupy", wanted.format(cudf.world.server.url))

    def test_a_project_that_requires_its_build(self, cudf):
        """It has no files of its own."""
        build = {"label": "x", "requires": ["whole=={version}"], "properties": CU130}
        cudf.describe("meta", entry("meta", build))
        cudf.world.add(Wheel("meta", "2.0", requires=("whole",)), Wheel("whole", "1.0"))
        assert self.chosen(cudf, "meta") == ["meta 2.0", "whole 1.0"]


class TestExtras:
    @pytest.fixture
    def jax(self, publisher):
        cuda13 = {"label": "cuda13", "requires": ["{name}[cuda13]=={version}"], "properties": CU130}
        publisher.describe("jax", entry("jax", cuda13))
        publisher.world.add(
            Wheel("jax", "0.10", extras=("cuda13",), requires=("np", "plugin; extra == 'cuda13'")),
            *(Wheel(name, "1.0") for name in ("plugin", "np")),
        )
        return publisher

    def test_with_a_gpu(self, jax):
        resolution = jax.resolve("jax")
        package = resolution.by_name["jax"]
        assert [item.name for item in resolution.packages] == ["jax", "np", "plugin"]
        assert (package.filename, package.label) == ("jax-0.10-py3-none-any.whl", "cuda13")
        assert package.requires[-1] == "plugin"
        assert package.to_tree()["url"].endswith("/files/jax-0.10-py3-none-any.whl")
        assert package.depends == ("np", "plugin")


class TestTogether:
    @pytest.fixture
    def family(self, publisher):
        url = publisher.server.url
        publisher.describe("torch", torch(url))
        publisher.describe("vision", torch(url, "vision", head='coherent = ["torch"]\n'))
        return publisher.torch("2.9.0").torch("1.0", name="vision", requires=("torch",))

    @pytest.mark.parametrize("wanted", [("vision",), ("torch", "vision")])
    @pytest.mark.parametrize("lacking", ["torch", "vision"])
    def test_one_build_is_missing(self, family, wanted, lacking):
        del family.server.resources[f"/whl/cu130/{lacking}/"]
        labels = {item.label for item in family.resolve(*wanted).packages}
        first = "vision" if wanted[0] == "vision" else "torch"
        # What is chosen first is followed, if it can be.
        assert labels == ({"cuda12.6"} if first == lacking else {"cuda12.6", "cuda13.0"})

    def test_the_null_variant_is_no_way_to_agree(self, family):
        text = torch(family.server.url, "vision", head='coherent = ["torch"]\n')
        text = text.replace("cuda13.0", "other").replace("cuda12.6", "more")
        family.describe("vision", text)
        labels = [item.label for item in family.resolve("torch", "vision").packages]
        assert labels == ["cuda13.0", "other"]

    def test_said_if_it_cannot_be(self, family):
        del family.server.resources["/whl/cu130/vision/"]
        found = family.resolve("torch", "vision")
        assert (
            "No variant of vision 1.0 agrees with torch (cuda13.0) in its label: --variant "
            "torch=LABEL takes one that both have, 'variants explain' lists them"
        ) in found.warnings

    def test_only_the_version_that_is_taken_counts(self, family):
        wheels = [
            Wheel("vision", "1.0+cu130", tag=LINUX, requires=("torch",)),
            Wheel("vision", "2.0+cu126", tag=LINUX, requires=("torch<2",)),
        ]
        family.place("cu130", "vision", wheels[0]).place("cu126", "vision", wheels[1])
        resolution = family.resolve("torch", "vision")
        assert [item.label for item in resolution.packages] == ["cuda13.0", "cuda13.0"]
        assert resolution.warnings == ()


class TestRealVariants:
    """Variant wheels that the publisher has, on the user's index or on one of its own."""

    @staticmethod
    def real(version):
        return cuda("torch", version, "12.0")

    @pytest.fixture
    def published(self, publisher):
        publisher.torch("2.8.0", "2.9.0")
        url = publisher.server.url
        publisher.describe("torch", torch(url, head=f'variants-index = "{url}/variant"\n'))
        release = self.real("2.9.0")
        publisher.place("x", "torch", *release.wheels())
        page = publisher.server.resources.pop("/whl/x/torch/").body.decode()
        path = f"/files/{release.metadata_filename}"
        publisher.server.resources[path] = Resource(json.dumps(release.metadata).encode())
        page = page.replace("</body>", f'<a href="{path}">metadata</a></body>')
        publisher.server.resources["/variant/torch/"] = Resource(page.encode(), kind="text/html")
        return publisher

    def test_on_an_index_of_its_own(self, published):
        assert published.names("torch") == ["torch-2.9.0-py3-none-any-cu120.whl cu120"]
        assert published.names("torch==2.8.0") == [f"{wheel('2.8.0+cu130')} cuda13.0"]

    def test_that_index_fails(self, published):
        published.server.resources["/variant/torch/"] = Resource(b"", 500)
        resolution = published.resolve("torch")
        assert [item.filename for item in resolution.packages] == [wheel("2.9.0+cu130")]
        (warning,) = resolution.warnings
        assert warning.startswith("torch: variant wheels from ")

    def test_the_users_index_comes_before_the_other(self, published):
        published.world.add(cuda("torch", "2.9.0", "13.0"))
        assert published.names("torch") == ["torch-2.9.0-py3-none-any-cu130.whl cu130"]
