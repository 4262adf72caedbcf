"""Packages of an export that their publisher has under another name, in texts as uv writes them."""

import pytest
from packaging.markers import Marker

from pep_variants.formats import toml
from uv_variants.exports import IndexRelease, IndexWheel, parts_of, with_hashes, with_real_files

INDEX = "https://example.test/simple"
HERE = "platform_machine == 'x86_64' and sys_platform == 'linux'"
LINUX = "cupy-14.2.0-cp312-cp312-manylinux_2_28_x86_64.whl"
WINDOWS = "cupy-14.2.0-cp312-cp312-win_amd64.whl"
MAC = "cupy-14.2.0-cp312-cp312-macosx_11_0_arm64.whl"


def wheel(plain, label, published):
    digest = f"{len(published):064x}"
    return {
        "filename": plain if label is None else plain.replace(".whl", f"-{label}.whl"),
        "plain": plain,
        "label": label,
        "url": f"https://files.test/{published}",
        "hashes": {"sha256": digest},
        "size": 1600,
        "upload-time": None,
        "requires": "x",
        "marked": label is not None,
        "served": "e" * 64 if label is not None else None,
        "published": published if label is not None else None,
    }


def of_cuda(plain, name="cupy_cuda13x", label="cuda13"):
    return wheel(plain, label, plain.replace("cupy-", f"{name}-"))


FILES = (
    of_cuda(LINUX),
    of_cuda(WINDOWS),
    of_cuda(LINUX, "cupy_cuda12x", "cuda12"),
    wheel(LINUX, None, LINUX),
    wheel(MAC, None, MAC),
)
RELEASE = IndexRelease([], [IndexWheel.read(tree) for tree in FILES])
ONE = [("cuda13", LINUX)]
MIXED = [("cuda13", LINUX), (None, MAC)]


def parts(shown, **more):
    return parts_of(RELEASE, "14.2.0", shown, **more)


def markers(shown, **more):
    found = parts(shown, **more)
    return {f"{part.name or 'cupy'}=={part.version}": part.marker("") for part in found}


ENVIRONMENTS = [
    {"sys_platform": system, "platform_machine": machine, "implementation_name": "cpython"}
    for system in ("linux", "win32", "darwin")
    for machine in ("x86_64", "AMD64", "arm64")
]


class TestParts:
    def test_names(self):
        assert parts([(None, LINUX), (None, MAC)]) == []
        assert markers([*ONE, ("cuda13", WINDOWS)]) == {"cupy-cuda13x==14.2.0": ""}
        own = ["cupy-cuda13x==14.2.0", "cupy==14.2.0"]
        assert list(markers(ONE, has_others=True)) == own
        two = ["cupy-cuda12x==14.2.0", "cupy-cuda13x==14.2.0"]
        assert list(markers([("cuda12", LINUX), ("cuda13", WINDOWS)])) == two

    @pytest.mark.parametrize("more", [{}, {"has_others": True}])
    def test_each_name_has_its_environments(self, more):
        """Exactly one of them is installed, whatever the environment."""
        found = markers([*ONE, ("cuda13", WINDOWS), (None, MAC)], **more)
        assert list(found) == ["cupy-cuda13x==14.2.0", "cupy==14.2.0"]
        for environment in ENVIRONMENTS:
            first, own = (Marker(text).evaluate(environment) for text in found.values())
            assert first is not own
            wheels = {("linux", "x86_64"), ("win32", "AMD64"), ("win32", "x86_64")}
            place = environment["sys_platform"], environment["platform_machine"]
            assert first is (place in wheels)

    def test_markers_of_uv(self):
        (first, _) = parts(MIXED)
        given = "python_full_version >= '3.12' or extra == 'a'"
        found = first.marker(given)
        assert found.startswith(f"({given}) and ")
        assert Marker(found)


class TestRequirements:
    TEXT = f"""\
# of uv
cupy[all]==14.2.0 \\
    --hash=sha256:{"a" * 64} \\
    --hash=sha256:{"b" * 64}
    # via project
plain==1.0 \\
    --hash=sha256:{"c" * 64}
"""

    def written(self, text, shown, *, hashes=True):
        def found(pinned):
            return parts(shown) if pinned.name == "cupy" else []

        return with_hashes(text, found, (lambda _: set()) if hashes else None)

    @pytest.mark.parametrize("end", ["\n", "\r\n"])
    def test_the_publishers_name_and_hash(self, end):
        """C4: plain pip installs the publisher's file alone."""
        digest = RELEASE.wheels[0].hashes["sha256"]
        before = self.TEXT[self.TEXT.index("cupy") : self.TEXT.index("    # via")]
        after = f"cupy-cuda13x[all]==14.2.0 \\\n    --hash=sha256:{digest}\n"
        expected = self.TEXT.replace(before, after).replace("\n", end)
        assert self.written(self.TEXT.replace("\n", end), ONE) == expected

    def test_own_files_of_other_platforms(self):
        lines = self.written(self.TEXT, MIXED).splitlines()
        (first, own) = (line for line in lines if line.startswith("cupy"))
        assert first.startswith("cupy-cuda13x[all]==14.2.0 ; ")
        assert own.startswith("cupy[all]==14.2.0 ; ")
        assert lines.count("    # via project") == 2
        assert f"    --hash=sha256:{'b' * 64}" in lines

    def test_without_hashes(self):
        text = "cupy==14.2.0 ; python_version < '4'  # via project\nplain==1.0\n"
        found = self.written(text, ONE, hashes=False)
        assert found == text.replace("cupy==", "cupy-cuda13x==")


def lock(wheels, more=""):
    return (
        f'[[packages]]\nname = "cupy"\nversion = "14.2.0"\n{more}index = "{INDEX}"\n{wheels}\n\n'
        '[[packages]]\nname = "plain"\nversion = "1.0"\n'
    )


class TestPylock:
    URL = f"{INDEX}/cupy/.variant/cuda13/{LINUX.replace('2.0-', '2.0-0_cuda13-')}"
    MADE = f'{{ url = "{URL}", hashes = {{ sha256 = "ce" }} }}'
    OWN = f'{{ url = "https://files.test/{MAC}", hashes = {{ sha256 = "72" }} }}'

    def packages(self, text):
        def found(locked):
            shown = [*locked.wheels, *([(None, MAC)] if MAC in text else [])]
            return parts(shown, has_others="sdist = " in text)

        def release(locked):
            return RELEASE, RELEASE.with_dependencies_of(locked.wheels)[0]

        written = with_real_files(text, release, found)
        return toml.loads(written)["packages"]

    def test_the_publishers_file(self):
        """C5: with its name, its URL and its hash."""
        (cupy, plain) = self.packages(lock(f"wheels = [{self.MADE}]"))
        (file,) = cupy.pop("wheels")
        assert cupy == {"name": "cupy-cuda13x", "version": "14.2.0", "index": INDEX}
        assert file["url"] == RELEASE.wheels[0].url
        assert file["hashes"] == RELEASE.wheels[0].hashes
        assert plain["name"] == "plain"

    def test_own_files_of_other_platforms(self):
        text = lock(f"wheels = [\n    {self.MADE},\n    {self.OWN},\n]")
        (first, own, _) = self.packages(text)
        assert (first["name"], own["name"]) == ("cupy-cuda13x", "cupy")
        assert [file["url"] for file in own["wheels"]] == [f"https://files.test/{MAC}"]
        here = {"sys_platform": "linux", "platform_machine": "x86_64"}
        assert Marker(first["marker"]).evaluate(here)
        assert not Marker(own["marker"]).evaluate(here)

    def test_with_a_marker_and_sources(self):
        sdist = 'sdist = { url = "https://files.test/cupy-14.2.0.tar.gz" }\n'
        marker = "marker = \"python_full_version >= '3.12'\"\n"
        (first, own, _) = self.packages(lock(f"wheels = [{self.MADE}]", marker + sdist))
        assert "sdist" not in first
        assert own["sdist"] == {"url": "https://files.test/cupy-14.2.0.tar.gz"}
        assert "wheels" not in own
        assert first["marker"].startswith("python_full_version >= '3.12' and ")
        assert own["marker"].startswith("python_full_version >= '3.12' and ")
