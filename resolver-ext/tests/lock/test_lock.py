"""Lock files: what is written, what is chosen from them, what is refused; existing builds."""

import hashlib
import json

import pytest
from packaging.pylock import Pylock
from world import GPU, cuda, target

from pep_variants._choose.preferences import Preferences
from pep_variants._detect.detector import Detector
from pep_variants._formats import toml
from pep_variants.errors import InconsistentMetadata, LockError
from resolvelib_variants.resolution import RequirementSet, parse_requirement
from support.catalog_places import numbered_entry
from support.index import Answer
from support.wheels import Wheel
from variants_index._downloads import Download, download_files
from variants_index._errors import BadResponse, NotFound
from variants_index._lock_files import read_lock, select_locked, write_lock
from variants_index.target import make_target

REQUIRES = (
    "both",
    "fast[x]; 'nvidia' in variant_namespaces",
    "slow; 'nvidia' not in variant_namespaces",
    "runtime==12.8; variant_label == 'cu128'",
)
OLDER_GPU = GPU.replace('"12.8", "12.7", ', "")


@pytest.fixture
def demo(world):
    world.add(cuda("demo", "1.0", "12.6", "12.8", requires=REQUIRES, non_variant=True))
    world.add(*(Wheel(name, "1.0", requires=("common",)) for name in ("both", "slow")))
    world.add(Wheel("fast", "1.0", extras=("x",), requires=("extra-fast; extra == 'x'",)))
    world.add(*(Wheel(name, "1.0") for name in ("common", "extra-fast")))
    return world.add(Wheel("runtime", "12.8"))


def locked(world, *requirements, targets=None, folder=None, **options):
    """Resolve and return the contents of the lock file."""
    requirement_set = RequirementSet(tuple(map(parse_requirement, requirements)))
    with world.resolver(**options) as resolver:
        return write_lock(
            [resolver.resolve(requirement_set, one) for one in targets or [target()]],
            created_by="tests",
            folder=folder or world.folder,
            documents=resolver.variant_documents,
            digests=lambda candidate: resolver.digests(candidate, ["sha256"]),
        )


def chosen(path, on=None):
    on = on or target()
    detector = Detector(environment=on.environment, platform=on.platform)
    return select_locked(read_lock(path), on, detector.platform, Preferences())


def choose(data, folder, on=None):
    """Return what is chosen from the contents of a lock file, as names and labels."""
    path = folder / "pylock.toml"
    path.write_bytes(data)
    found = chosen(path, on)
    return " ".join(f"{item.name}-{item.label}" if item.label else item.name for item in found)


def digest(data):
    return hashlib.sha256(data).hexdigest()


ON_GPU = "both common demo-cu128 extra-fast fast runtime"


class TestWriting:
    def test_contents(self, demo):
        tree = toml.read_toml(locked(demo, "demo").decode())
        assert tree["lock-version"] == "1.0"
        assert tree["created-by"] == "tests"
        assert tree["environments"] == [
            'implementation_name == "cpython" and platform_machine == "x86_64" '
            'and python_version == "3.12" and sys_platform == "linux"'
        ]
        packages = {package["name"]: package for package in tree["packages"]}
        assert list(packages) == sorted(packages)
        wheel = "demo-1.0-py3-none-any-cu128.whl"
        assert packages["demo"] == {
            "name": "demo",
            "version": "1.0",
            "dependencies": [{"name": "both"}, {"name": "fast"}, {"name": "runtime"}],
            "index": demo.server.url,
            "wheels": [
                {
                    "url": f"{demo.server.root}/files/demo/{wheel}",
                    "hashes": {"sha256": digest(demo.files["demo"][wheel])},
                }
            ],
            "variants-json": {
                "$schema": "https://variants-schema.wheelnext.dev/v0.2.0.json",
                "default-priorities": {"namespace": ["nvidia"]},
                "providers": packages["demo"]["variants-json"]["providers"],
                "variants": {"cu128": {"nvidia": {"cuda_version_lower_bound": ["12.8"]}}},
            },
            "tool": {"pep-variants": {"requires-dist": list(REQUIRES)}},
        }
        assert "tool" not in packages["both"]
        assert tree["tool"] == {"pep-variants": {"requirements": ["demo"]}}
        assert locked(demo, "demo", "both") == locked(demo, "both", "demo")

    def test_without_variants_nothing_is_said_of_them(self, demo):
        data = locked(demo, "both")
        assert b"variants" not in data
        Pylock.from_dict(toml.read_toml(data.decode()))

    @pytest.mark.parametrize(
        ("python", "expected"), [("nonsense", None), (">= 3.8,<4", "<4,>=3.8")]
    )
    def test_python_of_a_package(self, world, python, expected):
        world.add(Wheel("demo", "1.0"), **{"requires-python": python})
        data = locked(world, "demo")
        (package,) = toml.read_toml(data.decode())["packages"]
        assert package.get("requires-python") == expected
        assert choose(data, world.folder) == "demo"

    def test_markers_tell_targets_apart(self, demo):
        demo.add(Wheel("app", "1.0", requires=("both; sys_platform == 'win32'", "common")))
        windows = make_target(python_version="3.12", platforms=["windows"], name="windows")
        data = locked(demo, "app", targets=[target(), windows])
        tree = toml.read_toml(data.decode())
        markers = {package["name"]: package.get("marker") for package in tree["packages"]}
        assert markers["app"] is markers["common"] is None
        assert markers["both"] == (
            'implementation_name == "cpython" and platform_machine == "AMD64" '
            'and python_version == "3.12" and sys_platform == "win32"'
        )
        assert len(tree["environments"]) == 2
        assert choose(data, demo.folder) == "app common"
        assert choose(data, demo.folder, windows) == "app both common"

    def test_versions_of_a_package(self, world):
        world.add(Wheel("lib", "2.0"), **{"requires-python": ">=3.13"})
        world.add(Wheel("lib", "1.0"), Wheel("app", "1.0", requires=("lib",)))
        newer = make_target(python_version="3.13", platforms=["linux"], name="newer")
        data = locked(world, "app", targets=[target(), newer])
        app, *libs = toml.read_toml(data.decode())["packages"]
        assert [item["version"] for item in libs] == ["1.0", "2.0"]
        assert app["dependencies"] == [{"name": "lib", "version": v} for v in ("1.0", "2.0")]

    def test_versions_that_only_variants_tell_apart_have_groups(self, world):
        requires = ("lib==1; variant_label == 'null'", "lib==2; variant_label == 'cu128'")
        world.add(cuda("demo", "1.0", "12.8", requires=(*requires, "common")))
        world.add(Wheel("lib", "1"), Wheel("lib", "2"), Wheel("common", "1"))
        data = locked(world, "demo", targets=[target(), target("", "CPU only")])
        tree = toml.read_toml(data.decode())
        assert tree["dependency-groups"] == ["gpu", "cpu-only"]
        assert tree["default-groups"] == []
        markers = [(item["name"], item.get("marker")) for item in tree["packages"]]
        gpu, cpu = ('"gpu" in dependency_groups', '"cpu-only" in dependency_groups')
        assert markers == [
            ("common", None), ("demo", gpu), ("demo", cpu), ("lib", cpu), ("lib", gpu),
            ("name-a-dependency-group", f"{gpu} and {cpu}".replace(" in ", " not in ")),
        ]  # fmt: skip
        assert choose(data, world.folder) == "common demo-cu128 lib"
        assert choose(data, world.folder, target("", "cpu")) == "common demo-null lib"

    def test_local_files_are_relative_to_the_lock(self, world, tmp_path):
        world.links.mkdir()
        wheel = Wheel("demo", "1.0")
        (world.links / wheel.filename).write_bytes(wheel.build())
        data = locked(world, "demo", folder=tmp_path / "project", find_links=(str(world.links),))
        (package,) = toml.read_toml(data.decode())["packages"]
        assert "index" not in package
        assert package["wheels"] == [
            {"path": f"../links/{wheel.filename}", "hashes": {"sha256": digest(wheel.build())}}
        ]
        (tmp_path / "project").mkdir()
        (tmp_path / "project" / "pylock.toml").write_bytes(data)
        (item,) = chosen(tmp_path / "project" / "pylock.toml")
        assert item.url == (tmp_path / "project/../links" / wheel.filename).as_uri()

    def test_metadata_that_only_the_wheels_have(self, demo):
        del demo.files["demo"]["demo-1.0-variants.json"]
        assert choose(locked(demo, "demo"), demo.folder) == ON_GPU


class TestChoosing:
    def test_several_targets_in_one_file(self, demo):
        expected = [
            (target(), ON_GPU),
            (target("", "cpu"), "both common demo-null slow"),
            (target(OLDER_GPU, "older"), "both common demo-cu126 extra-fast fast"),
        ]
        data = locked(demo, "demo", targets=[on for on, _ in expected])
        assert [(on, choose(data, demo.folder, on)) for on, _ in expected] == expected

    def test_another_environment(self, demo):
        data = locked(demo, "demo")
        with pytest.raises(LockError, match="it is for other environments"):
            choose(data, demo.folder, make_target(python_version="3.11", platforms=["linux"]))

    def test_what_is_known_of_each(self, demo):
        path = demo.folder / "pylock.toml"
        path.write_bytes(locked(demo, "demo"))
        item = next(item for item in chosen(path) if item.name == "demo")
        assert item.to_tree() == {
            "name": "demo",
            "version": "1.0",
            "filename": "demo-1.0-py3-none-any-cu128.whl",
            "url": f"{demo.server.root}/files/demo/demo-1.0-py3-none-any-cu128.whl",
            "hashes": item.to_tree()["hashes"],
            "size": None,
            "label": "cu128",
            "properties": {"nvidia": {"cuda_version_lower_bound": ["12.8"]}},
            "why": "CUDA driver 12.8 or newer",
        }


class TestDownloading:
    def order(self, demo, label="cu128", **changes):
        filename = f"demo-1.0-py3-none-any-{label}.whl"
        (package,) = (item for item in demo.resolve("demo").packages if item.name == "demo")
        given = {
            "filename": filename,
            "url": f"{demo.server.root}/files/demo/{filename}",
            "hashes": {"sha256": digest(demo.files["demo"][filename])},
            "metadata": package.metadata,
        }
        return Download(**{**given, **changes})

    def fetch(self, demo, order):
        with demo.resolver() as resolver:
            return download_files(resolver.session, [order], demo.folder / "wheels")

    def test_verified_and_whole(self, demo):
        order = self.order(demo)
        (path,) = self.fetch(demo, order)
        assert digest(path.read_bytes()) == order.hashes["sha256"]
        demo.server.faults[order.filename] = Answer(404)
        assert self.fetch(demo, order) == [path]  # what is there already is not fetched
        path.write_bytes(b"damaged")
        with pytest.raises(NotFound, match="404"):
            self.fetch(demo, order)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"hashes": {"sha256": "0" * 64}}, "does not match its sha256 hash"),
            ({"filename": "../demo.whl"}, "is not a filename"),
            ({"filename": ""}, "is not a filename"),
            ({"filename": ".."}, "is not a filename"),
        ],
    )
    def test_refused(self, demo, changes, message):
        with pytest.raises(BadResponse, match=message):
            self.fetch(demo, self.order(demo, **changes))
        assert not list(demo.folder.glob("wheels/*"))

    def test_another_variant_than_promised(self, demo):
        tree = json.loads(demo.files["demo"]["demo-1.0-variants.json"])
        tree["variants"]["cu128"]["nvidia"]["cuda_version_lower_bound"] = ["12.7"]
        demo.files["demo"]["demo-1.0-variants.json"] = json.dumps(tree).encode()
        with pytest.raises(InconsistentMetadata, match=r"12\.7.*12\.8"):
            self.fetch(demo, self.order(demo))
        assert list((demo.folder / "wheels").iterdir()) == []


class TestCatalogue:
    """Builds of the catalogue are locked as their publishers name them."""

    @pytest.fixture
    def world(self, world):
        """The index, and a catalogue of which the preferences know."""
        path = world.folder / "cupy.toml"
        path.write_text(numbered_entry("cupy", "cupy-cuda{}x[ctk]=={{version}}"))
        resolver = world.resolver
        world.resolver = lambda **more: resolver(options={"variant-catalog": str(path)}, **more)
        for name in ("cupy-cuda12x", "cupy-cuda13x"):
            world.add(self.build(name))
        world.add(("cupy", "cupy-14.2.0.tar.gz", b""))
        world.add(Wheel("spacy", "3.0", requires=("CuPy>=13",)))
        return world.add(Wheel("toolkit", "13.0"), Wheel("torch", "2.9.0"))

    def build(self, name):
        requires = ("toolkit; extra == 'ctk'", "torch; extra == 'more'")
        return Wheel(name, "14.2.0", requires=requires, extras=("ctk", "more"))

    def machine(self, driver):
        return target(GPU.replace('"12.8", "12.7", "12.6"', f'"{driver}"'), f"cuda{driver}")

    def locked(self, world, *requirements, targets):
        """Return the packages of a lock file, and what each depends on."""
        data = locked(world, *requirements, targets=targets)
        found = Pylock.from_dict(toml.read_toml(data.decode())).packages
        packages = {str(item.name): item for item in found}
        depends = {
            name: [each["name"] for each in item.dependencies or ()]
            for name, item in packages.items()
        }
        return packages, depends

    def test_the_publishers_file(self, world):
        packages, depends = self.locked(world, "spacy", targets=[self.machine("12.0")])
        assert depends == {
            "cupy-cuda12x": ["toolkit"], "spacy": ["cupy-cuda12x"], "toolkit": [],
        }  # fmt: skip
        package = packages["cupy-cuda12x"]
        wheel = self.build("cupy-cuda12x")
        (file,) = package.wheels
        assert (str(package.version), package.index) == ("14.2.0", world.server.url)
        assert file.url == f"{world.server.root}/files/{wheel.name}/{wheel.filename}"
        assert file.hashes == {"sha256": digest(wheel.build())}

    def test_several_machines(self, world):
        """Markers tell some apart."""
        platform = self.machine("13.0").platform
        mac = make_target(
            python_version="3.12", name="mac", platform=platform, platforms=["macosx_11_0_arm64"]
        )
        on = self.machine("12.0")
        packages, depends = self.locked(world, "spacy", targets=[on, mac])
        systems = {
            name: str(item.marker or "").rpartition(" ")[2] for name, item in packages.items()
        }
        assert systems == {
            "cupy-cuda12x": '"linux"', "cupy-cuda13x": '"darwin"', "spacy": "", "toolkit": "",
        }  # fmt: skip
        assert depends["spacy"] == ["cupy-cuda12x", "cupy-cuda13x"]

    def test_groups(self, world):
        """Of machines that no marker tells apart, beside others."""
        linux = [self.machine("12.0"), self.machine("13.0")]
        platform = linux[1].platform
        mac = make_target(
            python_version="3.12", name="mac", platform=platform, platforms=["macosx_11_0_arm64"]
        )
        data = locked(world, "spacy", targets=[*linux, mac])
        tree = toml.read_toml(data.decode())
        assert tree["dependency-groups"] == ["cuda12-0", "cuda13-0"]
        groups = tree["tool"]["pep-variants"]["groups"]
        assert [group["builds"] for group in groups.values()] == [
            {"cupy": "cuda12"}, {"cupy": "cuda13"},
        ]  # fmt: skip
        markers = {item["name"]: item.get("marker", "") for item in tree["packages"]}
        assert markers["spacy"] == markers["toolkit"] == ""
        assert [markers[f"cupy-cuda{n}x"].count("dependency_groups") for n in (12, 13)] == [1, 1]
        assert markers["cupy-cuda13x"].count("sys_platform") == 2
        assert markers["name-a-dependency-group"].count("linux") == 1
        for machine, build in (
            (linux[0], 12),
            (linux[1], 13),
            (self.machine('13.4", "13.0", "12.0'), 13),
            (mac, 13),
        ):
            assert choose(data, world.folder, machine) == f"cupy-cuda{build}x spacy toolkit"
        with pytest.raises(LockError, match="cuda12-0, cuda13-0 is for this machine: cupy cuda12"):
            choose(data, world.folder, target("", "cpu"))

    @pytest.mark.parametrize(
        ("named", "message"),
        [
            (["cuda12.0"], "dependency group cuda12-0: cupy cuda12, CUDA driver 12.0 or newer"),
            (["cuda13-0"], "dependency group cuda13-0 is not for this machine: cupy cuda13 needs"),
            (["cuda14"], "no dependency group 'cuda14' for this environment, but cuda12-0, cuda13"),
            (["cuda12-0", "cuda13-0"], "cuda12-0, cuda13-0 are for different machines: name one"),
        ],
    )
    def test_a_group_that_is_named(self, world, named, message):
        on = self.machine("12.0")
        path = world.folder / "pylock.toml"
        path.write_bytes(locked(world, "cupy", targets=[on, self.machine("13.0")]))
        lines = []
        try:
            detector = Detector(environment=on.environment, platform=on.platform)
            detect, lock = detector.platform, read_lock(path)
            found = select_locked(lock, on, detect, groups=named, grouped=lines.append)
        except LockError as error:
            lines = [str(error)]
        else:
            assert found[0].name == f"cupy-{named[0][:6]}x"
        assert message in str(lines[0])

    def test_packages_that_chosen_variants_need(self, world):
        """Names in our own tables are the publishers', as those of the packages."""
        world.add(cuda("demo", "1.0", "12.0", requires=("cupy; 'nvidia' in variant_namespaces",)))
        on = self.machine("12.0")
        data = locked(world, "demo", "cupy[more]", targets=[on])
        tree = toml.read_toml(data.decode())
        assert tree["tool"]["pep-variants"]["requirements"] == ["cupy-cuda12x[more]", "demo"]
        assert choose(data, world.folder, on) == "cupy-cuda12x demo-cu120 toolkit torch"

    def test_a_build_that_stands_for_its_project(self, world):
        """C14."""
        world.add(Wheel("cudf", "25.12", requires=("cupy-cuda12x>=13",)))
        world.add(Wheel("cupy", "14.2.0"))
        _, depends = self.locked(world, "cudf", "spacy", targets=[self.machine("13.0")])
        assert list(depends) == ["cudf", "cupy-cuda12x", "spacy"]
        assert depends["spacy"] == ["cupy-cuda12x"]
