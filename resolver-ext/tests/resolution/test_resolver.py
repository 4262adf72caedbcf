"""Resolving over real HTTP: plain things first, then variants."""

import hashlib
import io
import json
import tarfile

import pytest
from world import cuda, short, target

from pep_variants import limits
from pep_variants._sources import Sources
from pep_variants.errors import VariantError
from resolvelib_variants.resolution import (
    NoSolution,
    RequirementError,
    RequirementSet,
    Wanted,
    parse_requirement,
)
from support.index import JSON, Answer, served
from support.wheels import Release, Wheel, metadata
from variants_index._errors import BadResponse, Unreachable
from variants_index.target import make_target


def wheels(name, *versions, **options):
    return [Wheel(name, version, **options) for version in versions]


class TestVersions:
    @pytest.mark.parametrize(
        ("there", "wanted", "chosen"),
        [
            (["1.0", "2.0", "10.0"], "demo", "10.0"),
            (["1.0", "2.0"], "demo<2", "1.0"),
            (["1.0", "2.0rc1"], "demo", "1.0"),
            (["1.0", "2.0rc1"], "--pre demo", "2.0rc1"),
            (["1.0", "2.0rc1"], "demo>=2.0rc1", "2.0rc1"),
            (["1.0", "2.0rc1"], "demo>1", "2.0rc1"),
            (["1.0rc1", "2.0.dev1"], "demo", "2.0.dev1"),
            (["1.0", "1.0.post1"], "demo==1.0", "1.0"),
            (["1.0", "1.0+local"], "demo==1.0", "1.0+local"),
            (["1.0", "1.0+local"], "demo===1.0", "1.0"),
        ],
    )
    def test_newest_that_is_wanted(self, world, there, wanted, chosen):
        world.add(*wheels("demo", *there))
        name = wanted.removeprefix("--pre ")
        (package,) = world.resolve(name, pre=name != wanted).packages
        assert str(package.version) == chosen

    def test_a_pre_release_is_no_way_out_of_a_conflict(self, world):
        world.add(*wheels("demo", "1.0", requires=("other==1",)), *wheels("other", "1", "2"))
        world.add(*wheels("demo", "2.0rc1"))
        with pytest.raises(NoSolution):
            world.names("demo", "other==2")

    def test_constraints_hold_for_what_others_require(self, world):
        world.add(Wheel("demo", "1.0", requires=("other",)), *wheels("other", "1.0", "2.0"))
        chosen = world.names("demo", constraints=["other<2", "unheard-of==3"])
        assert chosen == "demo-1.0 other-1.0"

    def test_a_constraint_by_url_is_the_file_that_is_taken(self, world):
        world.add(Wheel("demo", "1.0", requires=("other",)), *wheels("other", "1.0", "2.0"))
        world.add(cuda("built", "1.0", "12.8"), cuda("built", "2.0", "12.8"))
        files = f"{world.server.root}/files"
        old = f"other @ {files}/other/other-1.0-py3-none-any.whl"
        unused = f"unheard-of @ {files}/x/unheard_of-1.0-py3-none-any.whl"
        assert world.names("demo", constraints=[old, unused]) == "demo-1.0 other-1.0"
        assert world.names("demo", constraints=[f"{old} ; os_name == 'nt'"]) == "demo-1.0 other-2.0"
        build = f"built @ {files}/built/built-1.0-py3-none-any-cu128.whl"
        assert world.names("built", constraints=[build]) == "built-1.0-cu128"
        # A file that no index lists.
        elsewhere = old.replace("other", "else").replace("/files/else", "/files/other")
        world.add(("other", "else-1.0-py3-none-any.whl", Wheel("else", "1.0").build()))
        assert world.names("else", constraints=[elsewhere]) == "else-1.0"
        for wanted in (("demo", "other>1"), ("demo", old.replace("1.0", "2.0"))):
            with pytest.raises(NoSolution):
                world.names(*wanted, constraints=[old])
        with pytest.raises(RequirementError, match=r"demo @ \S+: the file is of other"):
            world.names("demo", constraints=[old.replace("other", "demo", 1)])

    def test_versions_are_not_looked_at_without_end(self, world, monkeypatch):
        monkeypatch.setattr(limits, "READ_VERSIONS", 3)
        for number in range(9):
            world.add(("demo", f"demo-{number}-py3-none-any-x.whl", b""))
        world.add(Wheel("demo", "0.1"))
        with pytest.raises(VariantError, match=r"^demo: variants of 3 versions were looked at"):
            world.names("demo")
        assert sum(path.endswith("-x.whl") for path in world.server.requests) <= 6
        assert world.names("demo<1") == "demo-0.1"

    def test_yanked_only_when_pinned(self, world):
        world.add(Wheel("demo", "1.0"))
        world.add(Wheel("demo", "2.0"), yanked="it breaks")
        assert world.names("demo") == "demo-1.0"
        with pytest.raises(NoSolution, match="no version fits of demo") as caught:
            world.names("demo>1")
        assert "demo 2.0: 1 file yanked" in caught.value.details
        resolution = world.resolve("demo==2.0")
        assert short(resolution) == "demo-2.0"
        assert resolution.warnings == ("demo 2.0 is yanked: it breaks",)
        with pytest.raises(NoSolution):
            world.names("demo==2.*")

    def test_python_of_the_target(self, world):
        world.add(Wheel("demo", "3.0", requires_python=">=3.14"))  # the page does not say so
        world.add(Wheel("demo", "2.0"), **{"requires-python": ">=3.13"})
        world.add(Wheel("demo", "1.5"), **{"requires-python": "nonsense"})
        resolution = world.resolve("demo")
        assert (short(resolution), resolution.warnings) == ("demo-1.5", ())
        assert world.names("demo", on=make_target(python_version="3.13")) == "demo-2.0"


class TestDependencies:
    def test_markers_and_extras(self, world):
        requires = (
            "always",
            "on-windows; sys_platform == 'win32'",
            "on-linux; sys_platform == 'linux'",
            "for-one; extra == 'one'",
            "for-two; extra == 'two' and python_version >= '3.12'",
            "too-old; extra == 'two' and python_version < '3.12'",
        )
        world.add(Wheel("demo", "1.0", requires=requires, extras=("one", "Two")))
        for name in ("always", "on-windows", "on-linux", "for-one", "for-two", "too-old"):
            world.add(Wheel(name, "1.0"))
        assert world.names("demo") == "always-1.0 demo-1.0 on-linux-1.0"
        both = world.resolve("Demo[ONE,two]")
        assert short(both) == "always-1.0 demo-1.0 for-one-1.0 for-two-1.0 on-linux-1.0"
        assert both.by_name["demo"].extras == ("one", "two")
        assert both.by_name["demo"].depends == ("always", "for-one", "for-two", "on-linux")

    def test_an_unknown_extra_and_a_requirement_that_does_not_apply(self, world):
        world.add(Wheel("demo", "1.0"))
        resolution = world.resolve("demo[none]", "none; sys_platform == 'win32'")
        assert short(resolution) == "demo-1.0"
        assert resolution.warnings == ("demo 1.0 has no extra 'none'",)

    def test_circles(self, world):
        world.add(Wheel("one", "1.0", requires=("two",)), Wheel("two", "1.0", requires=("one[x]",)))
        assert world.names("one") == "one-1.0 two-1.0"

    @pytest.mark.parametrize(
        "broken",
        [b"", b"Name: other\nVersion: 2.0\n", b"Name: demo\nVersion: 2.1\n",
         b"Name: demo\nVersion: 2.0\nRequires-Dist: what is this\n",
         b"Name: demo\nVersion: 2.0\nRequires-Dist: x; variant_label\n",
         b"Name: demo\nVersion: 2.0\nRequires-Dist: x>=" + b"9" * 5000 + b"\n",
         b"Name: demo\nVersion: 2.0\nRequires-Python: >=" + b"9" * 5000 + b"\n"],
    )  # fmt: skip
    def test_broken_metadata_costs_the_file(self, world, broken):
        world.add(*wheels("demo", "1.0", "2.0"))
        name = "demo-2.0-py3-none-any.whl"
        world.server.metadata_files[name] = broken
        world.server.attributes[name] = {"core-metadata": True}
        resolution = world.resolve("demo")
        assert short(resolution) == "demo-1.0"
        (warning,) = resolution.warnings
        assert warning.startswith("demo 2.0 is left out: ")


class TestFiles:
    def test_urls_and_paths(self, world, tmp_path):
        local = tmp_path / "local-1.0-py3-none-any.whl"
        local.write_bytes(Wheel("local", "1.0", requires=("demo",)).build())
        world.add(*wheels("demo", "1.0", "2.0"))
        url = f"{world.server.root}/files/demo/demo-1.0-py3-none-any.whl"
        resolution = world.resolve(str(local), f"demo @ {url}")
        assert short(resolution) == "demo-1.0 local-1.0"
        assert resolution.by_name["demo"].to_tree()["index"] is None

    def test_find_links(self, world):
        world.links.mkdir()
        for wheel in (*wheels("demo", "1.0", "3.0"), Wheel("other-name", "1.0")):
            (world.links / wheel.filename).write_bytes(wheel.build())
        (world.links / "notes.txt").write_text("")
        world.add(Wheel("demo", "2.0"))
        found = world.names("demo", "Other.Name", find_links=(str(world.links),))
        assert found == "demo-3.0 other-name-1.0"
        assert world.names("demo<3", find_links=(str(world.links),)) == "demo-2.0"
        without = Sources(find_links=(str(world.links),), no_index=True)
        assert world.names("demo<3", sources=without) == "demo-1.0"

    def test_local_index(self, world, tmp_path):
        folder = tmp_path / "simple" / "demo"
        folder.mkdir(parents=True)
        wheel = Wheel("demo", "1.0")
        (folder / wheel.filename).write_bytes(wheel.build())
        (folder / "index.html").write_text(f'<a href="{wheel.filename}">x</a>')
        sources = Sources(index_url=(tmp_path / "simple").as_uri())
        assert world.names("demo", sources=sources) == "demo-1.0"
        with pytest.raises(NoSolution, match="no version fits of other"):
            world.names("other", sources=sources)

    def test_without_metadata_files_a_few_ranges_do(self, world):
        big = {"big.bin": "x" * 500_000}
        world.add(Wheel("demo", "1.0", requires=("other",), files=big), core_metadata=False)
        world.add(Wheel("other", "1.0"), core_metadata=False)
        assert world.names("demo") == "demo-1.0 other-1.0"
        asked = [each.headers for each in world.server.requests if each.endswith(".whl")]
        assert asked
        assert all("Range" in headers for headers in asked)

    def test_what_was_read_from_a_wheel_is_kept(self, world):
        world.add(Wheel("demo", "1.0"), core_metadata=False)
        for _ in range(2):
            assert world.names("demo", cached=True) == "demo-1.0"
        assert sum(path.endswith(".whl") for path in world.server.requests) == 1

    def test_promised_metadata_that_is_not_there(self, world):
        world.add(Wheel("demo", "1.0"))
        world.server.faults["demo-1.0-py3-none-any.whl.metadata"] = Answer(404)
        assert world.names("demo") == "demo-1.0"

    def test_metadata_with_another_hash(self, world):
        world.add(Wheel("demo", "1.0"))
        world.server.faults["demo-1.0-py3-none-any.whl.metadata"] = Answer(body=b"x")
        with pytest.raises(BadResponse, match="sha256"):
            world.names("demo")


def sdist(name, version, text):
    buffer = io.BytesIO()
    files = {"setup.py": b"", "src/x.egg-info/PKG-INFO": b"Name: wrong\n"}
    if text is not None:
        files["PKG-INFO"] = text.encode()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path, data in files.items():
            info = tarfile.TarInfo(f"{name}-{version}/{path}")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return name, f"{name}-{version}.tar.gz", buffer.getvalue()


FINAL = "Metadata-Version: 2.2\nName: demo\nVersion: 2.0\nRequires-Dist: other\n"


class TestSourceDistributions:
    def test_final_metadata_will_do(self, world):
        text = FINAL + "Dynamic: License\n"
        world.add(sdist("demo", "2.0", text), Wheel("other", "1.0"))
        assert world.names("demo") == "demo-2.0 other-1.0"

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            (FINAL.replace("2.2", "2.1"), "its metadata (version 2.1) is not final"),
            (FINAL + "Dynamic: Requires-Dist\n", "it leaves requires-dist to its build"),
            ("", "its metadata (version unknown) is not final"),
            (None, "has no PKG-INFO"),
        ],
    )
    def test_needs_a_build(self, world, text, reason):
        world.add(sdist("demo", "2.0", text))
        with pytest.raises(NoSolution, match="no version fits of demo") as caught:
            world.names("demo")
        (detail,) = caught.value.details
        assert f"demo-2.0.tar.gz needs a build ({reason}), and nothing is built here" in detail
        assert "pip wheel --no-deps demo==2.0 -w DIR" in detail
        world.add(Wheel("demo", "1.0"))
        resolution = world.resolve("demo")
        assert short(resolution) == "demo-1.0"
        assert "demo 2.0 is left out: demo-2.0.tar.gz needs a build" in resolution.warnings[0]

    def test_broken(self, world):
        world.add(("demo", "demo-2.0.tar.gz", sdist("demo", "2.0", FINAL)[2][:100]))
        with pytest.raises(NoSolution) as caught:
            world.names("demo")
        assert "demo 2.0 cannot be used" in caught.value.details[0]


class TestIndexes:
    def test_one_that_is_down_is_no_reason_to_ask_the_next(self, world):
        world.add(*wheels("demo", "9.0"))
        with served() as private:
            private.faults["/simple/demo/"] = Answer(503)
            sources = Sources(index_url=world.server.url, extra_index_urls=(private.url,))
            with pytest.raises(Unreachable, match="503"):
                world.names("demo", sources=sources)

    def test_what_its_owner_says_of_a_project(self, world):
        world.add(*wheels("demo", "1.0"))
        page = json.loads(world.server.answer("/simple/demo/", {"Accept": JSON}).body)
        page["project-status"] = {"status": "deprecated", "reason": "use x"}
        body = json.dumps(page).encode()
        world.server.resources["/simple/demo/"] = Answer(body=body, kind=JSON)
        with world.resolver() as resolver:
            resolution = resolver.resolve(RequirementSet((parse_requirement("demo"),)), target())
        place = f"{world.server.url}demo/"
        assert resolution.warnings == (f"demo is deprecated on {place}: use x",)


class TestHashes:
    """Files of which the page gives no hash are looked at."""

    @pytest.mark.parametrize("page", [{}, {"hashes": {}}])
    def test_only_files_that_are_allowed(self, world, page):
        wheel = Wheel("demo", "1.0", requires=("other; extra == 'x'",), extras=("x",))
        world.add(wheel, **page).add(*wheels("demo", *(["2.0"] if not page else [])))

        def resolve(digest, extra=""):
            requirement = parse_requirement(f"demo{extra}").requirement
            wanted = Wanted(requirement, {"sha256": frozenset([digest])})
            return world.names(requirement_set=RequirementSet((wanted,)))

        digest = hashlib.sha256(wheel.build()).hexdigest()
        assert resolve(digest) == "demo-1.0"
        with pytest.raises(BadResponse if page else NoSolution) as caught:
            resolve("0" * 64)
        if page:
            assert "none of the hashes" in str(caught.value)
        else:
            assert "another hash than the requirements allow" in caught.value.details[1]
        world.add(*wheels("other", "1.0"))
        with pytest.raises(NoSolution, match="is missing for: other"):
            resolve(digest, "[x]")


NO_GPU = ""


class TestVariants:
    @pytest.mark.parametrize("there", [False, True])
    def test_a_dependency_by_a_marker_that_cannot_be_had_is_an_error(self, world, there):
        world.add(
            cuda("demo", "1.0", "12.8", requires=("runtime>=2; 'nvidia' in variant_namespaces",))
        )
        if there:
            world.add(*wheels("runtime", "1.0"))
        with pytest.raises(NoSolution) as caught:
            world.resolve("demo", *(["runtime<2"] if there else []))
        assert (
            "demo 1.0 (variant cu128) requires runtime>=2 because of the marker 'nvidia' in "
            "variant_namespaces. Markers take no part in choosing a variant: choose another "
            "variant with --variant demo=null"
        ) in caught.value.details

    def test_requests_of_backtracking(self, world):
        """Of versions whose dependencies conflict nothing else is fetched than without variants."""
        for number in range(1, 13):
            requires = ("runtime",) if number == 1 else ("runtime>=2",)
            world.add(cuda("demo", f"{number}.0", "12.6", "12.7", "12.8", requires=requires))
            world.add(*(Wheel("plain", f"{number}.0", requires=requires),))
        world.add(*wheels("runtime", "1.0", "2.0"))

        def requests(name, chosen):
            before = len(world.server.requests)
            assert short(world.resolve(name, "runtime<2")) == f"{name}-{chosen} runtime-1.0"
            return len(world.server.requests) - before

        without = requests("plain", "1.0")
        assert requests("demo", "1.0-cu128") <= 1.1 * without + 1

    def test_variants_of_extras(self, world):
        requires = ("runtime; extra == 'x' and variant_label == 'cu128'",)
        tree = cuda("demo", "1.0", "12.8")
        for wheel in tree.wheels():
            own = Wheel(
                wheel.name, wheel.version, wheel.label, wheel.tag, requires, wheel.variant_json,
                extras=("x",),
            )  # fmt: skip
            world.add(own)
        world.add(("demo", "demo-1.0-variants.json", json.dumps(tree.metadata).encode()))
        world.add(*wheels("runtime", "1.0"))
        assert world.names("demo[x]") == "demo-1.0-cu128 runtime-1.0"
        assert world.names("demo[x]", on=target(NO_GPU)) == "demo-1.0-null"

    def test_one_request_more_for_each_version_that_is_considered(self, world):
        for version in ("1.0", "2.0", "3.0"):
            world.add(cuda("demo", version, "12.8"))
        world.names("demo")
        assert world.server.requests == [
            "/simple/demo/",
            "/files/demo/demo-3.0-variants.json",
            "/files/demo/demo-3.0-py3-none-any-cu128.whl.metadata",
        ]

    def test_a_release_that_is_passed_over_is_named(self, world):
        newer = cuda("demo", "2.0", "13.0")
        del newer.metadata["variants"]["null"]
        world.add(newer)
        world.add(cuda("demo", "1.0", "12.8"))
        assert world.resolve("demo").warnings == (
            "demo 2.0 was passed over: none of its variants fits this machine (cu130 needs CUDA "
            "driver 13.0 or newer, this one supports up to 12.8); demo 1.0 was chosen",
        )
        assert world.resolve("demo<2").warnings == ()

    def test_every_variant_of_many_versions_incompatible(self, world):
        for number in range(1, 4):
            release = cuda("demo", f"{number}.0", "13.0")
            del release.metadata["variants"]["null"]
            world.add(release)
        with pytest.raises(NoSolution, match="no version fits of demo") as caught:
            world.names("demo")
        metadata_requests = [path for path in world.server.requests if path.endswith(".json")]
        assert len(metadata_requests) == len(set(metadata_requests)) == 3
        assert not any(path.endswith(".metadata") for path in world.server.requests)
        needs = "needs CUDA driver 13.0 or newer, this one supports up to 12.8"
        assert caught.value.details == (
            "you asked for demo",
            "None of the variants of demo 3.0 fits the machine of gpu.toml:",
            f"  cu130  {needs}",
            "What helps: update the NVIDIA driver to one that supports CUDA 13.0, or describe the "
            "target machine with --variant-platform FILE.",
            "… and 2 more versions of demo",
        )

    def test_a_named_file(self, world, tmp_path):
        world.add(
            cuda("demo", "1.0", "12.8", "13.0", requires=("other; variant_label == 'cu128'",))
        )
        world.add(Wheel("other", "1.0"))
        url = f"{world.server.root}/files/demo/demo-1.0-py3-none-any-{{}}.whl"
        assert world.names(url.format("cu128")) == "demo-1.0-cu128 other-1.0"
        with pytest.raises(NoSolution) as caught:
            world.names(url.format("cu130"))
        assert any("needs CUDA driver 13.0" in detail for detail in caught.value.details)


class TestLocalFiles:
    """An index cannot have local files read, nor places of the local network asked."""

    def test_a_dependency_on_a_local_file(self, world, tmp_path):
        """Left out, with a warning; a wheel that is local itself may have it."""
        secret = Wheel("secret", "1.0")
        place = tmp_path / secret.filename
        place.write_bytes(secret.build())
        new = Wheel("demo", "2.0", requires=[f"secret @ {place.as_uri()}"])
        world.add(Wheel("demo", "1.0"), new)
        resolution = world.resolve("demo")
        assert [str(package.version) for package in resolution.packages] == ["1.0"]
        assert any(
            "only a local file may require a local file" in text for text in resolution.warnings
        )
        local = tmp_path / new.filename
        local.write_bytes(new.build())
        assert world.names(f"demo @ {local.as_uri()}") == "demo-2.0 secret-1.0"


class TestFailures:
    def test_a_conflict_names_variants(self, world):
        world.add(cuda("demo", "1.0", "12.8", requires=("other==1",)))
        world.add(Wheel("app", "1.0", requires=("other==2",)), *wheels("other", "1", "2"))
        with pytest.raises(NoSolution) as caught:
            world.names("app", "demo")
        text = "\n".join((str(caught.value), *caught.value.details))
        assert text.startswith("these requirements contradict each other: other\n")
        assert "app 1.0 needs other==2\n" in text
        assert "demo 1.0 (variant cu128) needs other==1\n" in text
        assert text.endswith(
            "variants of demo 1.0:\n"
            "  cu128  compatible  CUDA driver 12.8 or newer\n"
            "  null   compatible  always fits"
        )

    @pytest.mark.parametrize(
        ("wanted", "detail"),
        [
            ("demo>9", "demo has none of the requested versions; available are: 2.0, 1.0"),
            ("nobody-knows", "nobody-knows is not found on {}"),
            ("foreign", "foreign 1.0: no wheel for manylinux x86_64"),
            ("empty", "empty has no wheel or source distribution on {}empty/"),
        ],
    )
    def test_what_there_is(self, world, wanted, detail):
        world.add(*wheels("demo", "1.0", "2.0"), ("empty", "notes.txt", b""))
        world.add(Wheel("foreign", "1.0", tag="cp312-cp312-win_amd64"))
        with pytest.raises(NoSolution, match="no version fits of") as caught:
            world.names(wanted)
        assert caught.value.details == (
            f"you asked for {wanted}",
            detail.format(world.server.url),
        )


class TestCaches:
    def test_a_second_time_pages_are_revalidated_and_nothing_else_is_fetched(self, world):
        world.add(cuda("demo", "1.0", "12.8", requires=("other",)), Wheel("other", "1.0"))
        kept = {"Cache-Control": "max-age=1000"}
        for name, data in world.server.metadata_files.items():
            world.server.faults[f"{name}.metadata"] = Answer(body=data, headers=kept)
        first = world.names("demo", cached=True)
        before = len(world.server.requests)
        assert world.names("demo", cached=True) == first
        again = world.server.requests[before:]
        assert set(again) == {"/simple/demo/", "/simple/other/"}

    def test_an_index_that_goes_offline_in_the_middle(self, world):
        world.add(Wheel("demo", "1.0", requires=("other",)), Wheel("other", "1.0"))
        world.server.faults["/simple/other/"] = Answer.cut_off(b"<")
        with pytest.raises(Unreachable, match="/simple/other/: the response is cut off"):
            with world.resolver(cached=True) as resolver:
                resolver.resolve(RequirementSet((parse_requirement("demo"),)), target())
        world.server.faults.clear()
        assert world.names("demo", cached=True) == "demo-1.0 other-1.0"


def test_targets_share_what_was_fetched(world):
    world.add(cuda("demo", "1.0", "12.8", requires=("other",)), Wheel("other", "1.0"))
    requirement_set = RequirementSet((parse_requirement("demo"),))
    with world.resolver() as resolver:
        found = [
            short(resolver.resolve(requirement_set, on)) for on in (target(), target(NO_GPU, "cpu"))
        ]
    assert found == ["demo-1.0-cu128 other-1.0", "demo-1.0-null other-1.0"]
    assert len(world.server.requests) == len(set(world.server.requests))


def test_plain_data_comes_out(world):
    world.add(cuda("demo", "1.0", "12.8", requires=("other",)), Wheel("other", "1.0"))
    tree = world.resolve("demo").to_tree()
    assert json.loads(json.dumps(tree)) == tree
    demo, other = tree["packages"]
    assert demo == {
        "name": "demo",
        "version": "1.0",
        "extras": [],
        "requested": True,
        "filename": "demo-1.0-py3-none-any-cu128.whl",
        "url": f"{world.server.root}/files/demo/demo-1.0-py3-none-any-cu128.whl",
        "index": f"{world.server.url}demo/",
        "catalog": None,
        "published_as": None,
        "hashes": demo["hashes"],
        "size": None,
        "yanked": None,
        "label": "cu128",
        "properties": {"nvidia": {"cuda_version_lower_bound": ["12.8"]}},
        "why": "CUDA driver 12.8 or newer",
        "requires": ["other"],
    }
    assert (other["label"], other["properties"], other["requested"]) == (None, None, False)


def built_against(name, version, *releases, **options):
    """Return a release with a variant for each release of torch, the newest one first in name."""
    variants = {f"torch{r.replace('.', '')}": {"abi_dependency": {"torch": [r]}} for r in releases}
    tree = metadata(variants, namespaces=[], providers={})
    tree["$schema"] = "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json"
    del tree["providers"]
    return Release(name, version, tree, **options)


class TestConditions:
    def test_none_for_what_is_there(self, world):
        world.add(*wheels("torch", "2.6.0"), built_against("ext", "1.0", "2.7", "2.8"))
        with pytest.raises(NoSolution) as caught:
            world.names("torch==2.6.0", "ext")
        text = "\n".join((str(caught.value), *caught.value.details))
        assert "ext 1.0 (variant torch27)" in text
        assert "2.7" in text

    def test_where_nothing_agrees_it_is_said(self, world):
        world.add(cuda("torch", "1.0", "12.6"), cuda("vision", "1.0", "12.8"))
        options = {"variant": ["torch=cu126"], "variant-coherent": ["nvidia"]}
        resolution = world.resolve("torch", "vision", options=options)
        assert short(resolution) == "torch-1.0-cu126 vision-1.0-cu128"
        (warning,) = resolution.warnings
        assert warning == "No variant of vision 1.0 agrees with torch (cu126) in 'nvidia'"
