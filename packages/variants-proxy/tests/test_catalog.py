"""The catalogue: builds at other places, under other names and as extras, chosen as variants."""

import hashlib
import io
import json
import re
import subprocess
import sys
import zipfile

import httpx
import pytest
from in_place_client import BARE, Asked, registered
from machines import NVIDIA
from publishers import ARM, EXTRA, INDEX, LINUX, MAC, OTHER_NAME, WINDOWS, Publisher
from test_cli import run
from upstream_server import metadata_of, wheel

from pep_variants.choose.preferences import preferences_from_options
from variants_catalog.installed_builds import ORIGIN_FILE, read_origin
from variants_catalog.listings import Unavailable
from variants_proxy import Limits, Machine, Upstream, encode, index_url

HERE = "torch-2.9.0+cu128-cp312-cp312-manylinux_2_28_x86_64.whl"
ALL = (LINUX, WINDOWS, ARM)


@pytest.fixture
def publisher(other):
    found = Publisher(other)
    for version in ("2.8.0", "2.9.0"):
        found.add("cu128", f"{version}+cu128", ALL, "cuda-lib==12.8")
        found.add("cu126", f"{version}+cu126", (LINUX, WINDOWS), "cuda-lib==12.6")
        found.add("cpu", f"{version}+cpu", ALL, hashed=False)
        found.add("cpu", version, (MAC,))
    found.add("cu130", "2.9.0+cu130", ALL, "cuda-lib==13.0")
    return found


@pytest.fixture
def own(upstream):
    """The user's index, with builds that need nothing in their names."""
    for version in ("2.8.0", "2.9.0"):
        for tags in (f"cp312-cp312-{LINUX}", f"cp312-cp312-{WINDOWS}", f"cp312-none-{MAC}"):
            name = f"torch-{version}-{tags}.whl"
            upstream.add("torch", name, wheel(name, "cuda-lib==12.8"))
    name = f"torch-2.9.0-cp312-cp312-{ARM}.whl"
    upstream.add("torch", name, wheel(name))
    return upstream


@pytest.fixture
def catalog(tmp_path):
    """Write entries; return the directory."""
    folder = tmp_path / "entries"

    def write(*texts):
        folder.mkdir(exist_ok=True)
        for text in texts:
            name = re.search('name = "([^"]+)"', text)[1]
            (folder / f"{name}.toml").write_text(text)
        return str(folder)

    return write


def names(files, version="2.9.0"):
    return sorted(
        name.removeprefix("torch-").removesuffix(".whl")
        for name in files
        if name.split("-")[1].startswith(version)
    )


class TestPublishersFiles:
    """Kind 1: the publisher's file, with its own name, URL and hash."""

    def test_a_page(self, own, publisher, catalog, start):
        proxy = start(own, catalog=catalog(publisher.entry()))
        files = Asked(proxy).files("torch")
        assert names(files) == [
            "2.9.0+cu128-cp312-cp312-manylinux_2_28_aarch64",
            "2.9.0+cu128-cp312-cp312-manylinux_2_28_x86_64",
            "2.9.0+cu128-cp312-cp312-win_amd64",
            "2.9.0-cp312-none-macosx_11_0_arm64",
        ]
        file = files[HERE]
        assert file["url"] == f"{publisher.server.url}/whl/cu128/{HERE.replace('+', '%2B')}"
        data = publisher.server.faults[f"/whl/cu128/{HERE.replace('+', '%2B')}"][2]
        assert file["hashes"] == {"sha256": hashlib.sha256(data).hexdigest()}
        metadata = hashlib.sha256(metadata_of(data)).hexdigest()
        assert file["core-metadata"] == {"sha256": metadata}
        mac = files["torch-2.9.0-cp312-none-macosx_11_0_arm64.whl"]
        assert mac["url"].startswith(own.url) or mac["url"].startswith(publisher.server.url)

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({}, "cu128"),
            ({"variant": ["torch=cuda12.6"]}, "cu126"),
            ({"variant": ["torch=null"]}, "cpu"),
            ({"variant-exclude": ["nvidia"]}, "cpu"),
            ({"variant": ["torch="]}, None),
            ({"no-variants": True}, None),
        ],
    )
    def test_preferences(self, own, publisher, catalog, start, options, expected):
        proxy = start(own, catalog=catalog(publisher.entry()))
        machine = Machine(
            NVIDIA, target="linux-x86_64", preferences=preferences_from_options(options)
        )
        files = proxy.files("torch", encode(machine))
        linux = [name for name in files if "2.9.0" in name and LINUX in name]
        if expected is None:
            assert linux == [f"torch-2.9.0-cp312-cp312-{LINUX}.whl"]
            assert not [path for path in publisher.server.paths if path.startswith("/whl")]
        else:
            plain = f"torch-2.9.0-cp312-cp312-{LINUX}.whl"  # for requirements with its hash
            assert [name for name in linux if name != plain] == [
                f"torch-2.9.0+{expected}-cp312-cp312-{LINUX}.whl"
            ]

    def test_a_machine_without_gpu(self, own, publisher, catalog, start):
        files = Asked(start(own, catalog=catalog(publisher.entry())), BARE).files("torch")
        assert names(files) == [
            "2.9.0+cpu-cp312-cp312-manylinux_2_28_aarch64",
            "2.9.0+cpu-cp312-cp312-manylinux_2_28_x86_64",
            "2.9.0+cpu-cp312-cp312-win_amd64",
            "2.9.0-cp312-none-macosx_11_0_arm64",
        ]
        assert files[f"torch-2.9.0+cpu-cp312-cp312-{LINUX}.whl"]["hashes"] == {}

    def test_no_lesser_build_under_a_higher_version(self, own, publisher, catalog, start):
        """An installer would take it: 2.9.0+cu130 is newer than 2.9.0+cu128."""
        publisher.add("cu126", "2.9.0+cu126", ("linux_x86_64",))
        entry = publisher.entry().replace("lower_bound :: 13.0", "lower_bound :: 12.7")
        publisher.add("cu130", "2.9.0+cu130", ("linux_x86_64",))
        files = Asked(start(own, catalog=catalog(entry))).files("torch")
        assert [name for name in names(files) if "linux" in name and "x86" in name] == [
            "2.9.0+cu128-cp312-cp312-manylinux_2_28_x86_64",
        ]

    def test_another_python(self, own, publisher, catalog, start):
        """Where the best variant has no wheel, the next one counts."""
        publisher.add("cu126", "2.9.0+cu126", (LINUX,), python="cp313")
        files = Asked(start(own, catalog=catalog(publisher.entry()))).files("torch")
        assert "2.9.0+cu126-cp313-cp313-manylinux_2_28_x86_64" in names(files)
        assert HERE in files

    def test_files_on_another_host(self, own, publisher, catalog, start, tmp_path):
        elsewhere = Publisher(publisher.server, own)
        elsewhere.add("cu128", "2.9.0+cu128", (LINUX,), python="cp314")
        files = Asked(start(own, catalog=catalog(publisher.entry()))).files("torch")
        name = f"torch-2.9.0+cu128-cp314-cp314-{LINUX}.whl"
        assert files[name]["url"].startswith(own.url)

    def test_versions_with_real_variants_stay(self, upstream, publisher, catalog, start):
        entry = publisher.entry().replace('"torch"', '"app"').replace("/torch", "/app")
        publisher.add("cu128", "1.0+cu128", (LINUX,), project="app")
        publisher.add("cu128", "2.0+cu128", (LINUX,), project="app")
        upstream.add_release("1.0")
        files = Asked(start(upstream, catalog=catalog(entry))).files()
        assert set(files) == {
            "app-1.0-0_cu128-py3-none-any.whl",
            f"app-2.0+cu128-cp312-cp312-{LINUX}.whl",
        }

    def test_a_project_that_is_only_there(self, upstream, other, publisher, catalog, start):
        main, last = Upstream("main", upstream.simple), Upstream("last", f"{other.url}/simple/")
        proxy = start(main, last, catalog=catalog(publisher.entry()))
        assert HERE in Asked(proxy, index="last").files("torch")
        assert Asked(proxy, index="main").get(project="torch").status_code == 404
        assert HERE in proxy.files("torch")
        assert not [
            path for path in publisher.server.paths if "/whl/" in path and "torch" not in path
        ]

    def test_what_the_user_pinned(self, own, publisher, catalog, start):
        place = catalog(publisher.entry())
        explicit = Upstream("main", own.simple, explicit=True)
        for proxy in (
            start(explicit, catalog=place),
            start(own, catalog=place, pinned=frozenset({"torch"})),
        ):
            assert HERE not in Asked(proxy).files("torch")
        cu126 = Upstream("main", f"{publisher.server.url}/whl/cu126")
        files = Asked(start(cu126, catalog=place)).files("torch")
        assert all("cu126" in name for name in files)

    def test_mirrors(self, own, publisher, catalog, start):
        entry = publisher.entry().replace(publisher.server.url, "https://publisher.example")
        mirrors = {"https://publisher.example": publisher.server.url}
        proxy = start(own, catalog=catalog(entry), catalog_mirrors=mirrors)
        assert HERE in Asked(proxy).files("torch")

    def test_a_lock_stays(self, own, publisher, catalog, start):
        proxy = start(own, catalog=catalog(publisher.entry()))
        name = f"torch-2.9.0%2Bcu126-cp312-cp312-{LINUX}.whl"
        mac = f"torch-2.9.0-cp312-none-{MAC}.whl"
        locked = {"torch": {"2.9.0+cu126": (name,), "2.9.0": (mac,)}}
        files = registered(proxy, locked=locked).files("torch")
        assert names(files) == [
            "2.9.0+cu126-cp312-cp312-manylinux_2_28_x86_64",
            "2.9.0+cu126-cp312-cp312-win_amd64",
            "2.9.0-cp312-cp312-manylinux_2_28_aarch64",
            "2.9.0-cp312-none-macosx_11_0_arm64",
        ]
        files = registered(proxy, BARE, locked=locked).files("torch")
        assert f"torch-2.9.0+cu126-cp312-cp312-{LINUX}.whl" in files
        assert not [name for name in names(files) if "cpu" in name and "x86_64" in name]
        plain = {"torch": {"2.9.0": (f"torch-2.9.0-cp312-cp312-{LINUX}.whl",)}}
        files = registered(proxy, locked=plain).files("torch")
        assert f"torch-2.9.0-cp312-cp312-{LINUX}.whl" in files

    def test_reasons(self, own, publisher, catalog, start):
        proxy = start(own, catalog=catalog(publisher.entry()))
        key = encode(Machine(NVIDIA, target="linux-x86_64"))
        tree = proxy.get(f"/p/{key}/variants/torch/").json()
        assert tree["catalog"]["documentation"] == "https://example.org/torch"
        assert (tree["catalog"]["problem"], tree["catalog"]["unavailable"]) == ("", [])
        (newest, _) = tree["versions"]
        assert [row["label"] for row in newest["variants"]][:2] == ["cuda12.8", "cuda12.6"]
        rejected = next(row for row in newest["variants"] if row["label"] == "cuda13.0")
        assert rejected["verdict"] == "rejected"
        assert newest["published"][f"torch-2.9.0-cp312-cp312-{LINUX}.whl"] == HERE

    def test_a_place_with_credentials(self, own, publisher, catalog, start, tmp_path):
        """The proxy has them, its clients do not: files pass through it."""
        host = publisher.server.url.partition("//")[2].partition(":")[0]
        (tmp_path / "netrc").write_text(f"machine {host}\nlogin me\npassword secret\n")
        for path in list(publisher.server.faults):
            publisher.server.guarded[path] = publisher.server.faults.pop(path)
        publisher.server.credentials = "Basic bWU6c2VjcmV0"
        environ = {"HOME": str(tmp_path), "PATH": "", "NETRC": str(tmp_path / "netrc")}
        proxy = start(own, catalog=catalog(publisher.entry()), environ=environ)
        file = proxy.files("torch")[HERE]
        assert file["url"].startswith(proxy.url)
        data = publisher.server.guarded[f"/whl/cu128/{HERE.replace('+', '%2B')}"][2]
        assert proxy.get(file["url"]).content == data
        assert proxy.get(f"{file['url']}.metadata").content == metadata_of(data)


class TestAgreement:
    """torchvision comes from the variant that torch comes from."""

    @pytest.fixture
    def entries(self, publisher, catalog):
        for backend in ("cu130", "cu128", "cu126", "cpu"):
            for version in ("0.23.0", "0.24.0"):
                publisher.add(
                    backend, f"{version}+{backend}", (LINUX,), "torch", project="torchvision"
                )
        text = publisher.entry()
        vision = text.replace('"torch"', '"torchvision"').replace('["torchvision"]', '["torch"]')
        return catalog(text, vision)

    def test_without_a_wish(self, own, entries, start):
        files = Asked(start(own, catalog=entries)).files("torchvision")
        assert f"torchvision-0.24.0+cu128-cp312-cp312-{LINUX}.whl" in files

    def test_forced(self, own, entries, start):
        options = {"variant": ["torch=cuda12.6"]}
        machine = Machine(
            NVIDIA, target="linux-x86_64", preferences=preferences_from_options(options)
        )
        proxy = start(own, catalog=entries)
        files = Asked(proxy, encode(machine)).files("torchvision")
        report = proxy.get(f"/p/{encode(machine)}/variants/torchvision/").json()
        assert "; as for torch, which it belongs to" in report["versions"][0]["why"]
        assert set(files) == {
            f"torchvision-{version}+cu126-cp312-cp312-{LINUX}.whl"
            for version in ("0.23.0", "0.24.0")
        }

    def test_locked(self, own, entries, start):
        name = f"torch-2.9.0%2Bcu126-cp312-cp312-{LINUX}.whl"
        asked = registered(start(own, catalog=entries), locked={"torch": {"2.9.0+cu126": (name,)}})
        assert all("cu126" in name for name in asked.files("torchvision"))

    def test_what_it_requires(self, own, publisher, entries, start):
        """The publisher has no torch for 12.8: nothing with that label is taken for the other."""
        del publisher.server.faults["/whl/cu128/torch/"]
        asked = Asked(start(own, catalog=entries))
        assert f"torch-2.9.0+cu126-cp312-cp312-{LINUX}.whl" in asked.files("torch")
        files = asked.files("torchvision")
        assert files
        assert all("cu126" in name for name in files)


class TestFailures:
    """A place that fails costs its variants, and says so in one line."""

    @pytest.mark.parametrize(
        ("answer", "reason"),
        [
            ((500, {}, b""), "500"),
            ((200, {"Content-Type": "text/html"}, b"<html>Log in</html>"), "lists no wheels"),
            ((200, {"Content-Type": "application/pdf"}, b"%PDF"), "lists no wheels"),
            ((404, {}, b""), ""),
        ],
    )
    def test_a_place(self, own, publisher, catalog, start, caplog, answer, reason):
        publisher.server.faults["/whl/cu128/torch/"] = answer
        proxy = start(own, catalog=catalog(publisher.entry()), limits=Limits(page_seconds=5.0))
        assert f"torch-2.9.0+cu126-cp312-cp312-{LINUX}.whl" in Asked(proxy).files("torch")
        tree = Asked(proxy).proxy.get(f"/p/{Asked(proxy).key}/variants/torch/").json()
        failures = [Unavailable(**item) for item in tree["catalog"]["unavailable"]]
        assert len(failures) == (1 if reason else 0)
        if reason:
            assert reason in failures[0].reason
            assert failures[0].host == publisher.server.url
            assert str(failures[0]) in caplog.text

    def test_one_line_for_a_host(self, own, publisher, catalog, start):
        for backend in ("cu126", "cu128"):
            publisher.server.faults[f"/whl/{backend}/torch/"] = (500, {}, b"")
        proxy = start(own, catalog=catalog(publisher.entry()))
        tree = proxy.get(f"/p/{Asked(proxy).key}/variants/torch/").json()
        (found,) = (Unavailable(**item) for item in tree["catalog"]["unavailable"])
        host = publisher.server.url
        assert str(found).startswith(f"torch: variants cuda12.8, cuda12.6 from {host} cannot be ")
        assert str(found).endswith(f"--variant-catalog-mirror {host}=URL)")

    def test_a_slow_place(self, own, publisher, catalog, start):
        def slow():
            import time

            time.sleep(3)
            yield b"late"

        publisher.server.faults["/whl/cu128/torch/"] = (200, {"Content-Type": "text/html"}, slow())
        proxy = start(own, catalog=catalog(publisher.entry()), limits=Limits(catalog_seconds=1.0))
        assert f"torch-2.9.0+cu126-cp312-cp312-{LINUX}.whl" in Asked(proxy).files("torch")

    def test_a_broken_entry(self, own, publisher, catalog, start, caplog):
        place = catalog(publisher.entry() + "[[variant]]\nlabel = 1\n")
        assert f"torch-2.9.0-cp312-cp312-{LINUX}.whl" in Asked(start(own, catalog=place)).files(
            "torch"
        )
        assert "torch.toml" in caplog.text

    def test_no_catalogue(self, own, start, caplog, tmp_path):
        proxy = start(own, catalog=str(tmp_path / "missing"))
        assert f"torch-2.9.0-cp312-cp312-{LINUX}.whl" in Asked(proxy).files("torch")
        assert "missing" in caplog.text

    def test_at_a_url(self, own, publisher, start):
        publisher.server.faults["/torch.toml"] = (200, {}, publisher.entry().encode())
        proxy = start(own, catalog=f"{publisher.server.url}/torch.toml")
        assert HERE in Asked(proxy).files("torch")
        assert HERE in Asked(proxy).files("torch")
        assert publisher.server.paths.count("/torch.toml") == 1


class TestOtherNames:
    """Kind 2 (C1): the publisher's wheel of another name, as a wheel of the project."""

    @pytest.fixture
    def cupy(self, upstream):
        for target in ("cupy_cuda12x", "cupy_cuda13x"):
            for platform in (LINUX, WINDOWS):
                name = f"{target}-14.2.0-cp312-cp312-{platform}.whl"
                upstream.add(target.replace("_", "-"), name, wheel(name, "numpy"))
        upstream.add("cupy", "cupy-14.2.0.tar.gz", b"source")
        return upstream

    NAME = f"cupy-14.2.0-0_cuda12-cp312-cp312-{LINUX}.whl"
    PUBLISHED = f"cupy_cuda12x-14.2.0-cp312-cp312-{LINUX}.whl"

    @pytest.mark.parametrize("core_metadata", [False, True])
    def test_in_place(self, cupy, catalog, start, core_metadata):
        cupy.core_metadata = core_metadata
        asked = registered(start(cupy, catalog=catalog(OTHER_NAME)))
        files = asked.files("cupy")
        assert {self.NAME, "cupy-14.2.0.tar.gz"} <= set(files)
        assert all("cuda12x" not in name for name in files)
        file = files[self.NAME]
        assert file["url"] == f".variant/cuda12/{self.NAME}"
        data = asked.get(file["url"], project="cupy").content
        assert hashlib.sha256(data).hexdigest() == file["hashes"]["sha256"]
        assert len(data) == file["size"]
        metadata = asked.get(f"{file['url']}.metadata", project="cupy").content
        assert metadata == metadata_of(data)
        assert b"\nName: cupy\n" in metadata
        assert b"cupy-cuda12x" not in metadata
        assert hashlib.sha256(metadata).hexdigest() == file["core-metadata"]["sha256"]
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            folder = "cupy-14.2.0.dist-info"
            assert {name.partition("/")[0] for name in archive.namelist() if "/" in name} == {
                folder
            }
            assert "cupy_cuda12x.py" in archive.namelist()
            variants = json.loads(archive.read(f"{folder}/variant.json"))["variants"]
            origin = read_origin(archive.read(f"{folder}/{ORIGIN_FILE}"), "")
        assert list(variants) == ["cuda12"]
        own = hashlib.sha256(cupy.files["cupy-cuda12x"][self.PUBLISHED]).hexdigest()
        assert (origin.requirement, origin.hashes) == ("cupy-cuda12x==14.2.0", {"sha256": own})
        assert origin.url.endswith(self.PUBLISHED)

    def test_through_a_keyed_page(self, cupy, catalog, start):
        proxy = start(cupy, catalog=catalog(OTHER_NAME))
        name = f"cupy-14.2.0-cp312-cp312-{LINUX}.whl"
        file = proxy.files("cupy")[name]
        data = proxy.get(file["url"]).content
        assert metadata_of(data) == proxy.get(f"{file['url']}.metadata").content
        # What was sent once has a hash.
        again = proxy.files("cupy")[name]
        assert again["hashes"] == {"sha256": hashlib.sha256(data).hexdigest()}

    def test_the_publishers_hash(self, cupy, catalog, start):
        """The file that is sent is checked against what the publisher's page says of it."""
        cupy.lies.add(self.PUBLISHED)
        proxy = start(cupy, catalog=catalog(OTHER_NAME))
        file = proxy.files("cupy")[f"cupy-14.2.0-cp312-cp312-{LINUX}.whl"]
        with pytest.raises(httpx.HTTPError):
            proxy.get(file["url"])

    def test_reasons(self, cupy, catalog, start):
        proxy = start(cupy, catalog=catalog(OTHER_NAME))
        tree = proxy.get(f"/p/{Asked(proxy).key}/variants/cupy/").json()
        (newest,) = tree["versions"]
        assert newest["origin"] == {
            f"cupy-14.2.0-cp312-cp312-{platform}.whl": "cupy-cuda12x==14.2.0"
            for platform in (LINUX,)
        }
        assert newest["published"] == {}

    def test_nothing_fits(self, cupy, catalog, start):
        files = Asked(start(cupy, catalog=catalog(OTHER_NAME)), BARE).files("cupy")
        assert set(files) == {"cupy-14.2.0.tar.gz"}

    def test_versions_of_the_project(self, cupy, catalog, start):
        """C15: another name adds no version."""
        name = f"cupy_cuda12x-99.0-cp312-cp312-{LINUX}.whl"
        cupy.add("cupy-cuda12x", name, wheel(name))
        files = Asked(start(cupy, catalog=catalog(OTHER_NAME))).files("cupy")
        assert set(files) == {self.NAME, "cupy-14.2.0.tar.gz"}

    def test_of_another_index(self, cupy, other, catalog, start):
        """C15: the first index that has the project decides, and what is before it."""
        entries = catalog(OTHER_NAME)
        first, last = Upstream("first", f"{other.url}/simple/"), Upstream("last", cupy.simple)
        proxy = start(first, last, catalog=entries)
        assert self.NAME in Asked(proxy, index="last").files("cupy")
        other.add("cupy", "cupy-14.2.0.tar.gz", b"source")
        proxy = start(first, last, catalog=entries)
        assert set(Asked(proxy, index="first").files("cupy")) == {"cupy-14.2.0.tar.gz"}
        assert set(Asked(proxy, index="last").files("cupy")) == {"cupy-14.2.0.tar.gz"}
        proxy = start(last, first, catalog=entries)
        assert self.NAME in Asked(proxy, index="last").files("cupy")

    def test_an_index_that_fails(self, cupy, catalog, start):
        """Of an index that fails for the other name nothing is taken, and it is said."""
        cupy.faults["/simple/cupy-cuda12x/"] = (500, {}, b"")
        proxy = start(cupy, catalog=catalog(OTHER_NAME))
        assert set(Asked(proxy).files("cupy")) == {"cupy-14.2.0.tar.gz"}
        tree = proxy.get(f"/p/{Asked(proxy).key}/variants/cupy/").json()
        (found,) = (Unavailable(**item) for item in tree["catalog"]["unavailable"])
        assert (found.labels, found.host) == (["cuda12"], "")

    def test_a_plain_wheel_beside(self, cupy, catalog, start):
        """uv reads the METADATA of one wheel: what differs has markers."""
        name = f"cupy-14.2.0-cp312-none-{MAC}.whl"
        cupy.add("cupy", name, wheel(name, "other"))
        cupy.core_metadata = True
        asked = registered(start(cupy, catalog=catalog(OTHER_NAME)))
        file = asked.files("cupy")[self.NAME]
        metadata = asked.get(f"{file['url']}.metadata", project="cupy").content.decode()
        assert re.search(r"Requires-Dist: numpy ?; ", metadata), metadata
        assert file["core-metadata"] is True  # merged when it is requested


class TestExtras:
    """Kind 3: the project's own wheel with the dependencies of an extra."""

    @pytest.mark.parametrize("core_metadata", [False, True])
    def test_in_place(self, upstream, catalog, start, core_metadata):
        name = "jax-0.10.2-py3-none-any.whl"
        plain = upstream.add("jax", name, wheel(name, "numpy", "plugin; extra == 'cuda12'"))
        upstream.core_metadata = core_metadata
        proxy = start(upstream, catalog=catalog(EXTRA))
        asked = registered(proxy)
        file = asked.files("jax")["jax-0.10.2-0_cuda12-py3-none-any.whl"]
        data = asked.get(file["url"], project="jax").content
        assert hashlib.sha256(data).hexdigest() == file["hashes"]["sha256"]
        metadata = metadata_of(data)
        assert b"Requires-Dist: plugin\n" in metadata
        assert metadata == asked.get(f"{file['url']}.metadata", project="jax").content
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            (path,) = (each for each in archive.namelist() if each.endswith("variant.json"))
            assert list(json.loads(archive.read(path))["variants"]) == ["cuda12"]
            record = archive.read(path.replace("variant.json", "RECORD")).decode()
        assert f"{path},sha256=" in record
        assert set(Asked(proxy, BARE).files("jax")) == {name}
        assert proxy.get(proxy.files("jax", BARE)[name]["url"]).content == plain
        through = proxy.files("jax")[name]
        assert proxy.get(through["url"]).content == data


class TestGivenHashes:
    """C16: the hashes that a client gives decide."""

    def test_what_would_be_rewritten(self, upstream, catalog, start):
        name = "jax-0.10.2-py3-none-any.whl"
        data = upstream.add("jax", name, wheel(name, "plugin; extra == 'cuda12'"))
        digest = hashlib.sha256(data).hexdigest()
        proxy = start(upstream, catalog=catalog(EXTRA), hashes={"jax": frozenset((digest,))})
        assert list(Asked(proxy).files("jax")) == [name]
        tree = proxy.get(f"/p/{Asked(proxy).key}/variants/jax/").json()
        assert tree["catalog"]["excluded"] is True

    def test_publishers_files(self, own, publisher, catalog, start):
        data = publisher.server.faults[f"/whl/cu128/{HERE.replace('+', '%2B')}"][2]
        digest = hashlib.sha256(data).hexdigest()
        place = catalog(publisher.entry())
        proxy = start(own, catalog=place, hashes={"torch": frozenset((digest,))})
        found = {name for name in Asked(proxy).files("torch") if "+" in name}
        assert HERE in found
        assert all(name.startswith("torch-2.9.0+cu128-") for name in found)
        tree = proxy.get(f"/p/{Asked(proxy).key}/variants/torch/").json()
        assert tree["catalog"]["excluded"] is False
        proxy = start(own, catalog=place, hashes={"torch": frozenset(("0" * 64,))})
        assert not [name for name in Asked(proxy).files("torch") if "+" in name]


class TestVariantsIndex:
    def test_real_variants(self, upstream, other, catalog, start):
        other.add_release("1.0", "numpy")
        other.add_release("2.0", "numpy")
        upstream.add("app", "app-2.0-py3-none-any.whl", wheel("app-2.0-py3-none-any.whl"))
        upstream.add_release("1.0", labels=("null", "cu126"))
        asked = registered(start(upstream, catalog=catalog(INDEX.replace("URL", other.url))))
        files = asked.files()
        assert set(files) == {
            "app-1.0-0_cu126-py3-none-any.whl",
            "app-2.0-0_cu128-py3-none-any.whl",
        }
        file = files["app-2.0-0_cu128-py3-none-any.whl"]
        answer = asked.get(file["url"])
        assert answer.headers["Location"].startswith(other.url)
        data = other.files["app"]["app-2.0-py3-none-any-cu128.whl"]
        assert file["hashes"]["sha256"] == hashlib.sha256(data).hexdigest()


class TestPip:
    """Plain pip, by the URL of the index alone."""

    def test_every_kind(self, own, publisher, catalog, start, tmp_path):
        for target in ("cupy_cuda12x", "cupy_cuda13x"):
            name = f"{target}-14.2.0-cp312-cp312-{LINUX}.whl"
            own.add(target.replace("_", "-"), name, wheel(name))
        own.add("cupy", "cupy-14.2.0.tar.gz", b"source")
        name = "jax-0.10.2-py3-none-any.whl"
        own.add("jax", name, wheel(name, "plugin; extra == 'cuda12'\nProvides-Extra: cuda12"))
        own.add("plugin", "plugin-1.0-py3-none-any.whl", wheel("plugin-1.0-py3-none-any.whl"))
        own.add(
            "cuda-lib", "cuda_lib-12.8-py3-none-any.whl", wheel("cuda_lib-12.8-py3-none-any.whl")
        )
        own.core_metadata = True
        proxy = start(own, catalog=catalog(publisher.entry(), OTHER_NAME, EXTRA))
        url = proxy.url + index_url(encode(Machine(NVIDIA, target="linux-x86_64")))
        report = tmp_path / "report.json"
        platform = ["--platform", LINUX, "--python-version", "3.12", "--only-binary", ":all:"]
        command = [sys.executable, "-m", "pip", "--isolated", "install", "--quiet", *platform]
        command += ["--index-url", url, "--no-cache-dir", "--report", str(report)]
        command += ["--target", str(tmp_path / "target"), "torch==2.9.0", "cupy", "jax"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found = {}
        for item in json.loads(report.read_text())["install"]:
            found[item["metadata"]["name"]] = item["metadata"]["version"]
        assert found == {
            "torch": "2.9.0+cu128",
            "cuda_lib": "12.8",
            "cupy": "14.2.0",
            "jax": "0.10.2",
            "plugin": "1.0",
        }
        installed = {path.name for path in (tmp_path / "target").glob("*.dist-info")}
        assert "torch-2.9.0+cu128.dist-info" in installed


def test_the_options(own, publisher, catalog, tmp_path):
    done = run(tmp_path, "serve", "--open", "--variant-catalog", "missing")
    assert done.returncode == 1
    assert f"{tmp_path / 'missing'}" in done.stderr
    done = run(tmp_path, "serve", "--open", "--variant-catalog-mirror", "x")
    assert done.returncode == 1
    assert "FROM=TO" in done.stderr
