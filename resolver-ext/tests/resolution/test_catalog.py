"""Existing builds in the resolver: what is chosen and said of them, hashes, agreement."""

import hashlib
import json
import zipfile
from dataclasses import replace

import pytest
from world import cuda, target

from pep_variants._sources import Sources
from resolvelib_variants.resolution import NoSolution, SameFiles, read_file
from support.catalog_places import (
    add,
    family,
    family_entries,
    numbered_entry,
    page,
    place_url,
    pytorch,
)
from support.index import Answer
from support.published_builds import standing_in
from support.wheels import Wheel
from variants_index._downloads import Download, download_files
from variants_index._errors import BadResponse

GPU = """
[[provider]]
namespace = "nvidia"
[provider.properties]
cuda_version_lower_bound = ["13.0", "12.8", "12.6", "12.0"]
"""
CUPY = "cupy-cuda{}x=={{version}}"


class Field:
    """The user's index, PyTorch's places, and a directory of entries."""

    def __init__(self, world, found):
        self.world, self.places = world, found.builds
        for name, files in found.index.files.items():
            world.add(*((name, filename, data) for filename, data in files.items()))
        self.catalog = world.folder / "catalog"
        family_entries(found.builds, self.catalog)

    def describe(self, name, requires):
        (self.catalog / f"{name}.toml").write_text(numbered_entry(name, requires))

    def resolve(self, *requirements, lines=(), **options):
        if lines:
            path = self.world.folder / "requirements.txt"
            path.write_text("".join(f"{line}\n" for line in lines))
            options["requirement_set"] = read_file(path, {})
        given = {"variant-catalog": str(self.catalog), **options.pop("options", {})}
        return self.world.resolve(*requirements, on=target(GPU), options=given, **options)


@pytest.fixture
def field(world):
    with standing_in(pytorch()) as found:
        yield Field(world, found)


def digest(data):
    return hashlib.sha256(data).hexdigest()


def labels(resolution):
    return {item.name: item.label for item in resolution.packages if item.label}


def versions(resolution):
    return [f"{item.name} {item.version}" for item in resolution.packages]


def test_what_is_said_of_a_build(field):
    resolution = field.resolve("torch")
    assert versions(resolution) == ["cudalib 130", "torch 2.9.0+cu130"]
    tree = resolution.by_name["torch"].to_tree()
    assert (tree["label"], tree["filename"]) == ("cuda13.0", "torch-2.9.0+cu130-py3-none-any.whl")
    path = f"/files{page('cu130')}torch-2.9.0%2Bcu130-py3-none-any.whl"
    assert tree["url"] == f"{field.places.files_url}{path}"
    assert tree["index"] == f"{place_url(field.places, 'cu130')}/torch/"
    assert tree["catalog"] == str(field.catalog / "torch.toml")
    assert tree["hashes"] == {"sha256": digest(family("2.9.0", "cu130")[0].build())}


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("torch==2.9.0+cu126", "2.9.0+cu126"),
        ("torch!=2.9.0+cu130", "2.9.0+cu128"),
        ("torch===2.9.0", "2.9.0"),
        ("torch==2.8.0", "2.8.0+cu130"),
    ],
)
def test_versions(field, wanted, expected):
    assert str(field.resolve(wanted).by_name["torch"].version) == expected


def test_a_place_that_is_an_index_of_the_user(field):
    """The user has chosen that build."""
    sources = Sources(index_url=place_url(field.places, "cpu"))
    found = field.resolve("torch", sources=sources)
    assert (versions(found), labels(found)) == (["torch 2.9.0+cpu"], {})


@pytest.mark.parametrize("on_page", [True, False])
def test_hashes_are_those_of_published_files(field, on_page):
    if on_page:
        field.places.unhashed.clear()
    library = Wheel("cudalib", "126").build()
    rest = f"cudalib==126 --hash=sha256:{digest(library)}"
    own = digest(family("2.9.0", "cu126")[0].build())
    found = field.resolve(lines=[f"torch==2.9.0 --hash=sha256:{own}", rest])
    assert labels(found) == {"torch": "cuda12.6"}
    with pytest.raises(NoSolution if on_page else BadResponse) as caught:
        field.resolve(lines=[f"torch==2.9.0 --hash=sha256:{'0' * 64}", rest])
    if on_page:
        assert "has another hash than the requirements allow" in str(caught.value.details)


def test_places_that_fail(field):
    """C7: their variants are lost, and a host is named once."""
    for name in ("torch", "torchvision"):
        del field.places.files[page("cu130", name)]
    resolution = field.resolve("torchvision")
    assert labels(resolution) == {"torch": "cuda12.8", "torchvision": "cuda12.8"}
    (warning,) = resolution.warnings
    assert "; choosing torch, torchvision without its build cuda13.0 (for a mirror: " in warning
    assert [str(item) for item in resolution.unavailable] == [warning]
    assert warning.endswith(f"(for a mirror: --variant-catalog-mirror {field.places.root}=URL)")


class TestOtherNames:
    """Builds that their publisher has under another name."""

    FILE = "cupy_cuda13x-14.2.0-py3-none-any.whl"

    @pytest.fixture
    def cupy(self, field):
        field.describe("cupy", CUPY)
        for name in ("cupy-cuda12x", "cupy-cuda13x"):
            field.world.add(Wheel(name, "14.2.0", requires=("numpy",)))
        field.world.add(Wheel("cupy-cuda13x", "14.3.0"), Wheel("numpy", "2.0"))
        field.world.add(("cupy", "cupy-14.2.0.tar.gz", b""))
        return field

    def test_what_is_said_and_downloaded(self, cupy, tmp_path):
        package = cupy.resolve("cupy").by_name["cupy"]
        tree, server = package.to_tree(), cupy.world.server
        assert (tree["name"], tree["version"], tree["label"]) == ("cupy", "14.2.0", "cuda13")
        assert tree["published_as"] == "cupy-cuda13x==14.2.0"
        assert tree["filename"] == self.FILE
        assert tree["url"] == f"{server.root}/files/cupy-cuda13x/{self.FILE}"
        assert tree["index"] == f"{server.url}cupy-cuda13x/"
        assert tree["requires"] == ["numpy"]
        assert tree["why"].endswith("; published as cupy-cuda13x")
        body = cupy.world.files["cupy-cuda13x"][self.FILE]
        assert tree["hashes"] == {"sha256": digest(body)}
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
            (path,) = download_files(resolver.session, [wanted], tmp_path / "right")
            wrong = replace(wanted, hashes={"sha256": "0" * 64})
            with pytest.raises(BadResponse, match="sha256"):
                download_files(resolver.session, [wrong], tmp_path / "wrong")
        assert path.name == "cupy-14.2.0-py3-none-any.whl"
        with zipfile.ZipFile(path) as archive:
            info = "cupy-14.2.0.dist-info"
            assert b"Name: cupy\n" in archive.read(f"{info}/METADATA")
            assert f"{info}/variant_origin.json" in archive.read(f"{info}/RECORD").decode()
            origin = json.loads(archive.read(f"{info}/variant_origin.json"))
        assert origin == {
            "name": "cupy-cuda13x", "version": "14.2.0", "url": file.url, "hashes": file.hashes,
        }  # fmt: skip
        assert list((tmp_path / "wrong").iterdir()) == []

    def test_a_project_that_is_not_there(self, cupy):
        del cupy.world.files["cupy-cuda13x"]
        resolution = cupy.resolve("cupy")
        assert labels(resolution) == {"cupy": "cuda12"}
        (warning,) = resolution.warnings
        assert warning.startswith("cupy: cupy-cuda13x, which has builds of it, is not found on ")
        assert resolution.unavailable == ()

    def test_a_file_of_another_project(self, cupy):
        evil = Wheel("evil", "14.2.0").metadata()
        cupy.world.server.faults[f"{self.FILE}.metadata"] = Answer(body=evil)
        cupy.world.server.attributes[self.FILE] = {"core-metadata": True}
        with pytest.raises(NoSolution) as caught:
            cupy.resolve("cupy")
        assert any("METADATA is of 'evil'" in text for text in caught.value.details)

    def test_hashes_exclude_them(self, cupy):
        """C16: the given hashes are those of the project's own files."""
        plain = Wheel("cupy", "14.2.0")
        cupy.world.add(plain)
        resolution = cupy.resolve(lines=[f"cupy==14.2.0 --hash=sha256:{digest(plain.build())}"])
        assert [item.filename for item in resolution.packages] == [plain.filename]
        assert resolution.warnings == (
            "cupy 14.2.0: builds of the catalogue that are rewritten when they are installed are "
            "left out, as hashes are given",
        )
        build = cupy.world.files["cupy-cuda13x"][self.FILE]
        with pytest.raises(NoSolution):
            cupy.resolve(lines=[f"cupy==14.2.0 --hash=sha256:{digest(build)}"])


class TestBothNames:
    """C14: a project is required, and a build of it under its publisher's name."""

    @pytest.fixture
    def cudf(self, field):
        field.describe("cupy", CUPY)
        ctk = ("toolkit; extra == 'ctk'",)
        for version in ("13.6.0", "14.2.0"):
            for n in (12, 13):
                build = Wheel(f"cupy-cuda{n}x", version, requires=ctk, extras=("ctk",))
                field.world.add(build)
            field.world.add(Wheel("cupy", version, extras=("ctk",)))
        field.world.add(
            Wheel("cudf", "25.12", requires=("cupy-cuda12x[ctk]>=13",)),
            Wheel("other", "1.0", requires=("cupy>=12",)),
            Wheel("ancient", "1.0", requires=("cupy<13",)),
            Wheel("toolkit", "12.9"),
        )
        return field

    @pytest.mark.parametrize("options", [{}, {"variant": ["cupy=cuda13"]}])
    def test_the_build_stands_for_the_project(self, cudf, options):
        """A label of the project says nothing of the build."""
        found = cudf.resolve("other", "cudf", options=options)
        expected = ["cudf 25.12", "cupy-cuda12x 14.2.0", "other 1.0", "toolkit 12.9"]
        assert versions(found) == expected
        assert (
            "cupy is not installed beside cupy-cuda12x, which has the same files and stands for it"
        ) in found.warnings
        assert found.provided == {"cupy": "cupy-cuda12x"}
        assert found.by_name["other"].depends == ("cupy-cuda12x",)

    def test_version_and_extras_are_what_is_asked_of_the_project(self, cudf):
        for wanted, constraints, expected in (
            (("cudf", "cupy<14"), [], ["cudf 25.12", "cupy-cuda12x 13.6.0"]),
            (("cupy-cuda13x", "cupy[ctk]"), ["cupy<14"], ["cupy-cuda13x 13.6.0"]),
        ):
            found = versions(cudf.resolve(*wanted, constraints=constraints))
            assert found == [*expected, "toolkit 12.9"]

    @pytest.mark.parametrize(
        ("wanted", "message"),
        [
            (("cudf", "ancient"), "ancient 1.0 needs cupy<13"),
            (("cupy-cuda12x==13.6.0", "cupy>=14"), "you asked for cupy>=14"),
            (("cudf", "cupy", "cupy-cuda13x"), "cupy and cupy-cuda13x and cupy-cuda12x are requ"),
            (("cudf", "cupy @ {}/files/cupy/cupy-14.2.0-py3-none-any.whl"), "leave out http"),
        ],
    )
    def test_what_the_build_cannot_stand_for(self, cudf, wanted, message):
        cudf.world.add(Wheel("cupy", "12.0"))
        with pytest.raises(SameFiles) as caught:
            cudf.resolve(*(text.format(cudf.world.server.root) for text in wanted))
        assert "which have the same files" in str(caught.value)
        assert message in "\n".join((str(caught.value), *caught.value.details))
        assert "you asked for cudf" not in caught.value.details

    def test_a_project_that_requires_its_build(self, cudf):
        """It has no files of its own."""
        cudf.describe("meta", "whole{}=={{version}}")
        cudf.world.add(Wheel("meta", "2.0", requires=("whole13",)), Wheel("whole13", "1.0"))
        assert versions(cudf.resolve("meta")) == ["meta 2.0", "whole13 1.0"]


class TestTogether:
    @pytest.mark.parametrize("wanted", [("torchvision",), ("torch", "torchvision")])
    @pytest.mark.parametrize("lacking", ["torch", "torchvision"])
    def test_one_build_is_missing(self, field, wanted, lacking):
        """What is chosen first is followed, if it can be; else it is said."""
        del field.places.files[page("cu130", lacking)]
        found = field.resolve(*wanted)
        agree = lacking == wanted[0]
        assert set(labels(found).values()) == {"cuda12.8", *([] if agree else ["cuda13.0"])}
        if wanted[0] != "torchvision":
            assert (
                agree
                or (
                    "No variant of torchvision 0.9.0 agrees with torch (cuda13.0) in its label: "
                    "--variant torch=LABEL takes one that both have, 'variants explain' lists them"
                )
                in found.warnings
            )

    def test_the_null_variant_is_no_way_to_agree(self, field):
        path = field.catalog / "torchvision.toml"
        path.write_text(path.read_text().replace('"cuda', '"other'))
        found = labels(field.resolve("torch", "torchvision"))
        assert found == {"torch": "cuda13.0", "torchvision": "other13.0"}

    @pytest.mark.parametrize("operator", ["==", "==="])
    def test_a_constraint_names_the_build(self, field, operator):
        """Also of what is chosen before the project that it is about."""
        (field.world.folder / "c.txt").write_text(f"torch{operator}2.9.0+cu126\n")
        for wanted in (["torchvision"], ["torchvision", "torch"]):
            found = labels(field.resolve(lines=[*wanted, "-c c.txt"]))
            assert found == {"torch": "cuda12.6", "torchvision": "cuda12.6"}

    def test_only_the_version_that_is_taken_counts(self, field):
        add(field.places, "cu130", Wheel("torchvision", "1.0+cu130", requires=("torch",)))
        add(field.places, "cu126", Wheel("torchvision", "2.0+cu126", requires=("torch<2",)))
        resolution = field.resolve("torch", "torchvision")
        assert versions(resolution)[-1] == "torchvision 1.0+cu130"
        assert set(labels(resolution).values()) == {"cuda13.0"}
        assert resolution.warnings == ()


def test_an_index_of_variants(field):
    """The publisher's variant wheels of a version come before the builds that are described."""
    path = field.catalog / "torch.toml"
    index = f'variants-index = "{field.world.server.root}/variants"\n'
    path.write_text(path.read_text().replace("coherent", f"{index}coherent"))
    release = cuda("torch", "2.9.0", "12.0")
    field.world.server.files["/variants/torch/"] = {
        release.metadata_filename: json.dumps(release.metadata).encode(),
        **{wheel.filename: wheel.build() for wheel in release.wheels()},
    }
    for wanted, label in (("torch", "cu120"), ("torch==2.8.0", "cuda13.0")):
        assert labels(field.resolve(wanted)) == {"torch": label}
