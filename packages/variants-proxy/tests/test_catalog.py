"""The catalogue: builds at other places, under other names and as extras, chosen as variants."""

import hashlib
import io
import re
import threading
import zipfile
from itertools import product

import httpx
import pytest
from publishers import ARM, EXTRA, INDEX, LINUX, MAC, OTHER_NAME, TORCH, WINDOWS, publish
from upstream_server import wheel
from worlds import BARE, KEY, Asked, key

from pep_variants.labels import ORIGIN_FILE
from support.index import Answer, metadata_of
from variants_catalog._installed_builds import read_origin
from variants_catalog.listings import Unavailable
from variants_proxy.settings import Limits, Upstream

HERE = f"torch-2.9.0+cu128-cp312-cp312-{LINUX}.whl"
PATH = f"/files/whl/cu128/torch/{HERE.replace('+', '%2B')}"
PLAIN = f"torch-2.9.0-cp312-cp312-{LINUX}.whl"
CU126 = f"torch-2.9.0+cu126-cp312-cp312-{LINUX}.whl"
PAGE = "/whl/cu128/torch/"
ALL = (LINUX, WINDOWS, ARM)


def torch(publisher):
    """Return the entry of torch with the URL of its publisher."""
    return TORCH.replace("URL", publisher.root)


@pytest.fixture
def publisher(other):
    for version in ("2.8.0", "2.9.0"):
        publish(other, "cu128", f"{version}+cu128", ALL, "cuda-lib==12.8")
        publish(other, "cu126", f"{version}+cu126", (LINUX, WINDOWS), "cuda-lib==12.6")
        publish(other, "cpu", f"{version}+cpu", ALL, hashed=False)
        publish(other, "cpu", version, (MAC,))
    publish(other, "cu130", "2.9.0+cu130", ALL, "cuda-lib==13.0")
    return other


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


@pytest.fixture
def begin(own, publisher, catalog, start):
    """Start a proxy for the user's index with the entry of torch."""
    return lambda **options: start(own, catalog=catalog(torch(publisher)), **options)


def names(files, version="2.9.0"):
    return sorted(
        name.removeprefix("torch-").removesuffix(".whl")
        for name in files
        if name.split("-")[1].startswith(version)
    )


def unavailable(proxy, project="torch"):
    return [Unavailable(**item) for item in proxy.report(project)["catalog"]["unavailable"]]


class TestPublishersFiles:
    """Kind 1: the publisher's file, with its own name, URL and hash."""

    def test_a_page(self, publisher, begin):
        files = Asked(proxy := begin()).files("torch")
        assert names(files) == [
            "2.9.0+cu128-cp312-cp312-manylinux_2_28_aarch64",
            "2.9.0+cu128-cp312-cp312-manylinux_2_28_x86_64",
            "2.9.0+cu128-cp312-cp312-win_amd64",
            "2.9.0-cp312-none-macosx_11_0_arm64",
        ]
        file, data = files[HERE], publisher.files[PAGE][HERE]
        assert file["url"] == f"{publisher.root}{PATH}"
        assert file["hashes"] == {"sha256": hashlib.sha256(data).hexdigest()}
        metadata = hashlib.sha256(metadata_of(data)).hexdigest()
        assert file["core-metadata"] == {"sha256": metadata}
        tree = proxy.report("torch")
        assert tree["catalog"]["documentation"] == "https://example.org/start"
        assert (tree["catalog"]["problem"], tree["catalog"]["unavailable"]) == ("", [])
        (newest, _) = tree["versions"]
        assert [row["label"] for row in newest["variants"]][:2] == ["cuda12.8", "cuda12.6"]
        rejected = next(row for row in newest["variants"] if row["label"] == "cuda13.0")
        assert rejected["verdict"] == "rejected"
        assert newest["published"][PLAIN] == HERE

    def test_preferences(self, publisher, begin):
        publish(publisher, "cu128", "2.9.0+cu128", ("win_arm64",))
        proxy = begin()
        for options in ({"variant": ["torch="]}, {"no-variants": True}):
            files = proxy.files("torch", key(**options))
            assert [name for name in files if "2.9.0" in name and LINUX in name] == [PLAIN]
        assert not [path for path in publisher.requests if "/whl/" in path]
        for options, expected in (
            ({}, "cu128"),
            ({"variant": ["torch=cuda12.6"]}, "cu126"),
            ({"variant": ["torch=null"]}, "cpu"),
            ({"variant-exclude": ["nvidia"]}, "cpu"),
        ):
            files = proxy.files("torch", key(**options)).keys() - {PLAIN}  # for its hash
            linux = [name for name in files if "2.9.0" in name and LINUX in name]
            assert linux == [f"torch-2.9.0+{expected}-cp312-cp312-{LINUX}.whl"]
            # Nor for a platform that only another build has.
            builds = {name.split("-")[1].partition("+")[2] for name in files}
            assert builds <= {"", "cpu", expected}

    def test_no_lesser_build_under_a_higher_version(self, own, publisher, catalog, start):
        """An installer would take it: 2.9.0+cu130 is newer than 2.9.0+cu128."""
        publish(publisher, "cu126", "2.9.0+cu126", ("linux_x86_64",))
        entry = torch(publisher).replace("lower_bound :: 13.0", "lower_bound :: 12.7")
        publish(publisher, "cu130", "2.9.0+cu130", ("linux_x86_64",))
        files = Asked(start(own, catalog=catalog(entry))).files("torch")
        assert [name for name in names(files) if "linux" in name and "x86" in name] == [
            "2.9.0+cu128-cp312-cp312-manylinux_2_28_x86_64",
        ]

    def test_another_python_and_host(self, own, publisher, begin):
        """Where the best variant has no wheel, the next one counts; files may be elsewhere."""
        publish(publisher, "cu126", "2.9.0+cu126", (LINUX,), python="cp313")
        (name,) = publish(publisher, "cu128", "2.9.0+cu128", (LINUX,), python="cp314")
        publisher.attributes[name] = {"url": f"{own.root}/{name}"}
        files = Asked(begin()).files("torch")
        assert "2.9.0+cu126-cp313-cp313-manylinux_2_28_x86_64" in names(files)
        assert files[name]["url"].startswith(own.root)

    def test_a_project_that_is_only_there(self, upstream, other, publisher, catalog, start):
        main, last = Upstream("main", upstream.url), Upstream("last", other.url)
        proxy = start(main, last, catalog=catalog(torch(publisher)))
        assert HERE in Asked(proxy, index="last").files("torch")
        assert Asked(proxy, index="main").get(project="torch").status_code == 404
        assert HERE in proxy.files("torch")
        assert not [path for path in other.requests if "/whl/" in path and "torch" not in path]

    def test_what_the_user_pinned(self, own, publisher, catalog, start):
        place = catalog(torch(publisher))
        explicit = Upstream("main", own.url, explicit=True)
        for proxy in (
            start(explicit, catalog=place),
            start(own, catalog=place, pinned=frozenset({"torch"})),
        ):
            assert HERE not in Asked(proxy).files("torch")
        cu126 = Upstream("main", f"{publisher.root}/whl/cu126")
        files = Asked(start(cu126, catalog=place)).files("torch")
        assert all("cu126" in name for name in files)

    def test_a_lock_stays(self, begin):
        proxy = begin()
        name, mac = CU126.replace("+", "%2B"), f"torch-2.9.0-cp312-none-{MAC}.whl"
        locked = {"torch": {"2.9.0+cu126": (name,), "2.9.0": (mac,)}}
        assert names(Asked(proxy, locked=locked).files("torch")) == [
            "2.9.0+cu126-cp312-cp312-manylinux_2_28_x86_64",
            "2.9.0+cu126-cp312-cp312-win_amd64",
            "2.9.0-cp312-cp312-manylinux_2_28_aarch64",
            "2.9.0-cp312-none-macosx_11_0_arm64",
        ]
        files = Asked(proxy, BARE, locked=locked).files("torch")
        assert CU126 in files
        assert not [name for name in names(files) if "cpu" in name and "x86_64" in name]
        plain = {"torch": {"2.9.0": (PLAIN,)}}
        assert PLAIN in Asked(proxy, locked=plain).files("torch")

    def test_a_place_with_credentials(self, publisher, begin, tmp_path):
        """The proxy has them, its clients do not: files pass through it."""
        (tmp_path / "netrc").write_text("machine 127.0.0.1\nlogin me\npassword secret\n")
        publisher.credentials = "me:secret"
        del publisher.metadata_files[HERE]
        environ = {"HOME": str(tmp_path), "PATH": "", "NETRC": str(tmp_path / "netrc")}
        proxy = begin(environ=environ)
        file, data = proxy.files("torch")[HERE], publisher.files[PAGE][HERE]
        assert file["url"].startswith(proxy.url)
        # It is sent whole only, so its metadata is beside it.
        assert file["core-metadata"] is True
        assert proxy.get(file["url"]).content == data
        assert proxy.get(f"{file['url']}.metadata").content == metadata_of(data)


class TestAgreement:
    """torchvision comes from the variant that torch comes from."""

    @pytest.mark.parametrize("required", ["torch", "torch; platform_release != 'extra'"])
    def test_forced_locked_and_missing(self, own, publisher, catalog, start, required):
        versions = ("0.23.0", "0.24.0")
        for backend, version in product(("cu130", "cu128", "cu126", "cpu"), versions):
            local = f"{version}+{backend}"
            publish(publisher, backend, local, (LINUX,), required, project="torchvision")
        text = torch(publisher)
        vision = text.replace('"torch"', '"torchvision"').replace("['torchvision']", "['torch']")
        entries = catalog(text, vision)

        def chosen(backend):
            return {f"torchvision-{each}+{backend}-cp312-cp312-{LINUX}.whl" for each in versions}

        proxy = start(own, catalog=entries)
        assert chosen("cu128") <= set(Asked(proxy).files("torchvision"))
        forced = key(variant=["torch=cuda12.6"])
        locked = {"torch": {"2.9.0+cu126": (CU126.replace("+", "%2B"),)}}
        for asked in (Asked(proxy, forced), Asked(proxy, locked=locked)):
            assert set(asked.files("torchvision")) == chosen("cu126")
        report = proxy.report("torchvision", forced)
        assert "; as for torch, which it belongs to" in report["versions"][0]["why"]
        # The publisher has no torch for 12.8: nothing with that label is taken for the other.
        del publisher.files[PAGE]
        asked = Asked(start(own, catalog=entries))
        assert CU126 in asked.files("torch")
        assert set(asked.files("torchvision")) == chosen("cu126")


class TestFailures:
    """A place that fails costs its variants, and says so in one line."""

    @pytest.mark.parametrize(
        ("answer", "reason"),
        [
            (Answer(500), "500"),
            (None, "no complete response"),
            (Answer(404), "not found"),
            (Answer(403), "not found"),
        ],
        ids=["status", "slow", "none", "forbidden"],
    )
    def test_a_place(self, publisher, begin, caplog, answer, reason):
        ended = threading.Event()

        def late():
            return Answer(body=(ended.wait(20) and b"" for _ in range(1)), kind="text/html")

        publisher.faults[PAGE] = answer or late
        limits = Limits(catalog_seconds=20 if answer else 0.5)
        if answer is None or answer.status >= 500:  # the page fails, so that clients ask again
            refused = Asked(begin(limits=limits)).get(project="torch")
            assert refused.status_code == 503
            assert (publisher.root in refused.text, reason in refused.text) == (True, True)
            assert refused.headers["retry-after"] == "1"
        proxy = begin(limits=limits, allow_missing_sources=True)
        assert CU126 in Asked(proxy).files("torch")
        found = unavailable(proxy)
        ended.set()
        assert len(found) == 1
        for each in found:
            assert reason in each.reason
            assert each.host == publisher.root
            assert str(each) in caplog.text

    def test_a_place_that_wants_a_password(self, publisher, begin):
        """Status 403 is 'not here', as of storage that does not say what it lacks; 401 is not."""
        publisher.faults[PAGE] = Answer(401)
        proxy = begin()
        assert CU126 in Asked(proxy).files("torch")
        (found,) = unavailable(proxy)
        assert "access denied (HTTP status 401): put user name" in found.reason

    def test_an_index_of_the_user_that_forbids(self, own, publisher, begin):
        own.faults["/simple/torch/"] = Answer(403)
        assert Asked(begin()).get(project="torch").status_code == 403

    @pytest.mark.parametrize("problem", ["torch.toml", "missing"])
    def test_a_catalogue_that_cannot_be_read(
        self, own, publisher, catalog, start, caplog, tmp_path, problem
    ):
        place = catalog(torch(publisher) + "[[variant]]\nlabel = 1\n")
        if problem == "missing":
            place = str(tmp_path / "missing")
        refused = Asked(start(own, catalog=place)).get(project="torch")
        assert refused.status_code == 503
        assert problem in refused.text
        proxy = start(own, catalog=place, allow_missing_sources=True)
        assert PLAIN in Asked(proxy).files("torch")
        assert problem in caplog.text
        assert problem in proxy.report("torch")["catalog"]["problem"]

    def test_at_a_url(self, own, publisher, start):
        publisher.faults["/torch.toml"] = Answer(200, torch(publisher).encode())
        proxy = start(own, catalog=f"{publisher.root}/torch.toml")
        for _ in range(2):
            assert HERE in Asked(proxy).files("torch")
        assert publisher.requests.count("/torch.toml") == 1

    @pytest.mark.parametrize(
        ("answer", "reason"),
        [
            (Answer(404), "cannot be fetched: not found"),
            (Answer(200, b"{"), "not valid JSON"),
            (Answer(503), "the server cannot answer now"),
        ],
        ids=["none", "broken", "down"],
    )
    def test_at_a_url_that_does_not_give_it(self, own, publisher, start, answer, reason):
        """No client gets another build; the next request may have it."""
        publisher.faults["/torch.json"] = answer
        url = f"{publisher.root}/torch.json"
        refused = Asked(start(own, catalog=url)).get(project="torch")
        assert refused.status_code == 503
        assert refused.text.startswith(f"{url}: {reason}")
        assert PLAIN in Asked(start(own, catalog=url, allow_missing_sources=True)).files("torch")


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
    SERVED = f"cupy-14.2.0-cp312-cp312-{LINUX}.whl"
    PUBLISHED = f"cupy_cuda12x-14.2.0-cp312-cp312-{LINUX}.whl"

    @pytest.mark.parametrize("core_metadata", [False, True])
    def test_in_place(self, cupy, catalog, start, core_metadata):
        cupy.core_metadata = core_metadata
        asked = Asked(start(cupy, catalog=catalog(OTHER_NAME)))
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
            origin = read_origin(archive.read(f"cupy-14.2.0.dist-info/{ORIGIN_FILE}"), "")
        own = hashlib.sha256(cupy.files["cupy-cuda12x"][self.PUBLISHED]).hexdigest()
        assert (origin.requirement, origin.hashes) == ("cupy-cuda12x==14.2.0", {"sha256": own})
        assert origin.url.endswith(self.PUBLISHED)

    def test_through_a_keyed_page(self, cupy, catalog, start):
        name = f"cupy_cuda12x-99.0-cp312-cp312-{LINUX}.whl"  # C15: another name adds no version
        cupy.add("cupy-cuda12x", name, wheel(name))
        proxy = start(cupy, catalog=catalog(OTHER_NAME))
        assert set(Asked(proxy).files("cupy")) == {self.NAME, "cupy-14.2.0.tar.gz"}
        file = proxy.files("cupy")[self.SERVED]
        data = proxy.get(file["url"]).content
        assert metadata_of(data) == proxy.get(f"{file['url']}.metadata").content
        # What was sent once has a hash.
        again = proxy.files("cupy")[self.SERVED]
        assert again["hashes"] == {"sha256": hashlib.sha256(data).hexdigest()}
        (newest,) = proxy.report("cupy")["versions"]
        assert newest["origin"] == {self.SERVED: "cupy-cuda12x==14.2.0"}
        assert newest["published"] == {}
        assert set(Asked(proxy, BARE).files("cupy")) == {"cupy-14.2.0.tar.gz"}

    def test_the_publishers_hash(self, cupy, catalog, start):
        """The file that is sent is checked against what the publisher's page says of it."""
        cupy.wrong_hashes.add(self.PUBLISHED)
        proxy = start(cupy, catalog=catalog(OTHER_NAME))
        file = proxy.files("cupy")[self.SERVED]
        with pytest.raises(httpx.HTTPError):
            proxy.get(file["url"])

    def test_of_another_index(self, cupy, other, catalog, start):
        """C15: the first index that has the project decides, with builds of its own."""
        entries = catalog(OTHER_NAME)
        first, last = Upstream("first", other.url), Upstream("last", cupy.url)
        proxy = start(first, last, catalog=entries)
        assert self.NAME in Asked(proxy, index="last").files("cupy")
        other.add("cupy", "cupy-14.2.0.tar.gz", b"source")
        proxy = start(first, last, catalog=entries)
        assert set(Asked(proxy, index="first").files("cupy")) == {"cupy-14.2.0.tar.gz"}
        assert set(Asked(proxy, index="last").files("cupy")) == {"cupy-14.2.0.tar.gz"}
        proxy = start(last, first, catalog=entries)
        assert self.NAME in Asked(proxy, index="last").files("cupy")
        # What is in a place for find-links is of no index.
        links = Upstream("links", other.links_url, "find-links")
        proxy = start(last, links, catalog=entries)
        assert set(Asked(proxy, index="last").files("cupy")) == {"cupy-14.2.0.tar.gz"}

    def test_a_placeholder(self, cupy, other, catalog, start):
        """It counts where no index has a release, asked or not; one that fails may have some."""
        cupy.files["cupy"].clear()
        cupy.add("cupy", "cupy-0.1.tar.gz", b"placeholder")
        text = OTHER_NAME.replace("documentation", 'placeholder = "<1"\ndocumentation')
        entries = catalog(text)
        last, after = Upstream("last", cupy.url), Upstream("after", other.url)
        links = Upstream("links", other.links_url, "find-links")
        other.faults["/simple/cupy/"] = Answer(500)
        proxy = start(last, after, catalog=entries, allow_missing_sources=True)
        assert set(Asked(proxy, index="last").files("cupy")) == {"cupy-0.1.tar.gz"}
        found = unavailable(proxy, "cupy")
        assert [(item.labels, item.host) for item in found] == [(["cuda12"], "")]  # that fits
        other.faults.clear()
        for beside in (after, links):
            other.files.pop("cupy", None)
            proxy = start(last, beside, catalog=entries)
            assert self.NAME in Asked(proxy, index="last").files("cupy")
            for version in ("14.2.0", "15.0"):
                other.files["cupy"] = {f"cupy-{version}.tar.gz": b"source"}
                proxy = start(last, beside, catalog=entries)
                assert set(Asked(proxy, index="last").files("cupy")) == {"cupy-0.1.tar.gz"}

    def test_an_index_that_fails(self, cupy, catalog, start):
        """Of an index that fails for the other name nothing is taken, and it is said."""
        cupy.faults["/simple/cupy-cuda12x/"] = Answer(500)
        entries = catalog(OTHER_NAME)
        assert Asked(start(cupy, catalog=entries)).get(project="cupy").status_code == 503
        proxy = start(cupy, catalog=entries, allow_missing_sources=True)
        assert set(Asked(proxy).files("cupy")) == {"cupy-14.2.0.tar.gz"}
        (found,) = unavailable(proxy, "cupy")
        assert (found.labels, found.host) == (["cuda12"], "")

    def test_a_plain_wheel_beside(self, cupy, catalog, start):
        """uv reads the METADATA of one wheel: what differs has markers."""
        name = f"cupy-14.2.0-cp312-none-{MAC}.whl"
        cupy.add("cupy", name, wheel(name, "other"))
        cupy.core_metadata = True
        asked = Asked(start(cupy, catalog=catalog(OTHER_NAME)))
        file = asked.files("cupy")[self.NAME]
        metadata = asked.get(f"{file['url']}.metadata", project="cupy").content.decode()
        assert re.search(r"Requires-Dist: numpy ?; ", metadata), metadata
        assert file["core-metadata"] is True  # merged when it is requested


def test_an_extra(upstream, catalog, start):
    """Kind 3: the project's own wheel with the dependencies of an extra."""
    name, labelled = "jax-0.10.2-py3-none-any.whl", "jax-0.10.2-0_cuda12-py3-none-any.whl"
    plain = upstream.add("jax", name, wheel(name, "numpy", "plugin; extra == 'cuda12'"))
    proxy = start(upstream, catalog=catalog(EXTRA))
    asked = Asked(proxy)
    file = asked.files("jax")[labelled]
    data = asked.get(file["url"], project="jax").content
    assert hashlib.sha256(data).hexdigest() == file["hashes"]["sha256"]
    assert b"Requires-Dist: plugin\n" in metadata_of(data)
    assert set(Asked(proxy, BARE).files("jax")) == {name}
    for machine, expected in ((BARE, plain), (KEY, data)):
        assert proxy.get(proxy.files("jax", machine)[name]["url"]).content == expected


class TestGivenHashes:
    """C16: the hashes that a client gives decide."""

    def test_what_would_be_rewritten(self, upstream, catalog, start):
        name = "jax-0.10.2-py3-none-any.whl"
        data = upstream.add("jax", name, wheel(name, "plugin; extra == 'cuda12'"))
        digest = hashlib.sha256(data).hexdigest()
        proxy = start(upstream, catalog=catalog(EXTRA), hashes={"jax": frozenset((digest,))})
        assert list(Asked(proxy).files("jax")) == [name]
        assert proxy.report("jax")["catalog"]["excluded"] is True

    def test_publishers_files(self, publisher, begin):
        digest = hashlib.sha256(publisher.files[PAGE][HERE]).hexdigest()
        proxy = begin(hashes={"torch": frozenset((digest,))})
        found = {name for name in Asked(proxy).files("torch") if "+" in name}
        assert HERE in found
        assert all(name.startswith("torch-2.9.0+cu128-") for name in found)
        assert proxy.report("torch")["catalog"]["excluded"] is False
        proxy = begin(hashes={"torch": frozenset(("0" * 64,))})
        assert not [name for name in Asked(proxy).files("torch") if "+" in name]


def test_an_index_of_variants(upstream, other, catalog, start):
    other.add_release("1.0", "numpy")
    other.add_release("2.0", "numpy")
    upstream.add("app", "app-2.0-py3-none-any.whl", wheel("app-2.0-py3-none-any.whl"))
    upstream.add_release("1.0", labels=("null", "cu126"))
    asked = Asked(start(upstream, catalog=catalog(INDEX.replace("URL", other.root))))
    files = asked.files()
    assert set(files) == {"app-1.0-0_cu126-py3-none-any.whl", "app-2.0-0_cu128-py3-none-any.whl"}
    file = files["app-2.0-0_cu128-py3-none-any.whl"]
    assert asked.get(file["url"]).headers["Location"].startswith(other.root)
    data = other.files["app"]["app-2.0-py3-none-any-cu128.whl"]
    assert file["hashes"]["sha256"] == hashlib.sha256(data).hexdigest()


def test_an_own_build_that_does_not_fit(own, catalog, start):
    """Nor are there sources of it, or of older versions, which an installer would compile."""
    for version in ("2.8.0", "2.9.0", "1.0"):
        own.add("torch", f"torch-{version}.tar.gz", b"")
    table = (
        '[[variant]]\nlabel = "cuda13.0"\nlocal = ""\nversions = "VERSIONS"\n'
        'platforms = ["manylinux_2_17_x86_64"]\n'
        'properties = ["nvidia :: cuda_version_lower_bound :: 13.0"]\n'
    )
    head = 'catalog-version = "1"\n[project]\nname = "torch"\ndocumentation = "https://a.example"\n'
    text = f'{head}default-priorities.namespace = ["nvidia"]\n{table}'
    proxy = start(own, catalog=catalog(text.replace("VERSIONS", ">=2.8")))
    files = proxy.files("torch")
    assert not [name for name in files if LINUX in name or name.endswith(".tar.gz")]
    assert f"torch-2.9.0-cp312-cp312-{WINDOWS}.whl" in files  # for a lock
    newest = proxy.report("torch")["versions"][0]
    assert "--variant torch=" in newest["unfit"]
    asked = proxy.files("torch", key(variant=["torch="]))
    assert {PLAIN, "torch-2.9.0.tar.gz"} <= asked.keys()
    # An older version that fits, for which there is no table, has its wheel and sources.
    catalog(text.replace("VERSIONS", ">=2.9"))
    files = start(own, catalog=catalog()).files("torch")
    assert {f"torch-2.8.0-cp312-cp312-{LINUX}.whl"} <= files.keys()
    assert "torch-2.9.0.tar.gz" not in files


def test_a_build_before_newer_versions(own, publisher, catalog, start):
    """Newer versions without one are yanked, as a whole: a universal lock has one version."""
    for tags in (f"cp312-cp312-{LINUX}", f"cp312-none-{MAC}"):
        own.add("torch", f"torch-3.0-{tags}.whl", wheel(f"torch-3.0-{tags}.whl"))
    publish(publisher, "cpu", "3.0+cpu", (LINUX,))
    text = torch(publisher)
    first = text.replace("documentation", "before-version = true\ndocumentation")

    def held(proxy, key=KEY):
        files = proxy.page("torch", key)["files"]
        assert {file["filename"].split("-")[1] for file in files} > {"3.0", "3.0+cpu"}
        found = {file["filename"].split("-")[1]: file.get("yanked") for file in files}
        found = {version: why for version, why in found.items() if why}
        for version, why in found.items():
            assert "for this GPU, but torch 2.9.0 (cuda12.8) has one" in why
            assert f"require torch=={version} " in why  # uv wants the local part, too
        return found.keys()

    named, none = ({"variant-before-version": [name]} for name in ("torch", ":none:"))
    proxy = start(own, catalog=catalog(first))
    assert held(proxy) == {"3.0", "3.0+cpu"}
    assert not held(proxy, BARE)
    assert not held(proxy, key(**none))
    # Where uv's own pages are replaced, the command orders versions.
    in_place = Asked(proxy).files("torch").values()
    assert not any("yanked" in file for file in in_place)
    text_of_page = proxy.get(f"/p/{KEY}/simple/torch/", headers={"Accept": "text/html"}).text
    assert 'data-yanked="no build for this GPU' in text_of_page
    proxy = start(own, catalog=catalog(text))
    assert not held(proxy)
    assert held(proxy, key(**named)) == {"3.0", "3.0+cpu"}
    # The publisher's own word goes before ours.
    for name in [*own.files["torch"]]:
        if name.startswith("torch-3.0"):
            own.attributes[name] = {"yanked": "wrong results"}
    proxy = start(own, catalog=catalog(first))
    files = proxy.page("torch")["files"]
    reasons = {file["yanked"] for file in files if "-3.0" in file["filename"]}
    assert reasons == {"wrong results"}
