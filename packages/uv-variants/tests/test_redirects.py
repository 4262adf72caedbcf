"""Packages of an export that stand for another project, in texts as uv writes them."""

from itertools import product

import pytest
from packaging.markers import Marker

from pep_variants.formats import toml
from uv_variants.exports import pylock, requirements
from uv_variants.exports.marker_complement import outside
from uv_variants.exports.redirects import Redirect, Redirects

INDEX = "https://example.test/simple"
HERE = "sys_platform == 'linux' and platform_machine == 'x86_64'"
ELSEWHERE = "sys_platform != 'linux' or platform_machine != 'x86_64'"
WHEEL = "cupy-14.2.0-py3-none-linux_x86_64.whl"
URL = f"{INDEX}/cupy/.variant/cuda13/cupy-14.2.0-0_cuda13-py3-none-linux_x86_64.whl"
OWN = "https://files.test/cupy-14.2.0-py3-none-any.whl"
ENVIRONMENTS = [
    {"sys_platform": system, "platform_machine": machine, "python_full_version": python}
    for system, machine, python in product(
        ("linux", "win32", "darwin"), ("x86_64", "AMD64", "arm64"), ("3.10.1", "3.12.0", "3.13.2")
    )
]


def redirects(said=None, *, is_here=True, has_others=True):
    found = Redirect(
        "cupy",
        "14.2.0",
        ("cupy-cuda13x",),
        ("cupy-cuda13x",) if is_here else (),
        frozenset({("cuda13", WHEEL)}),
        has_others=has_others,
    )
    say = [].append if said is None else said.append
    return Redirects(lambda name, _: found if name == "cupy" else None, say)


class TestMarkers:
    @pytest.mark.parametrize(
        ("marker", "other"),
        [
            ("", HERE),
            ("python_full_version >= '3.12'", HERE),
            ("python_full_version >= '3.12' or sys_platform == 'darwin'", HERE),
            (
                "",
                "(sys_platform == 'linux' and platform_machine == 'x86_64') or "
                "(platform_machine == 'AMD64' and python_full_version < '3.13') or "
                "(sys_platform == 'darwin' and (python_full_version > '3.12' or "
                "platform_machine in 'arm64 aarch64'))",
            ),
            ("", "((sys_platform not in 'linux win32')) and python_full_version <= '3.12'"),
            ("", '"linux" == sys_platform'),
        ],
    )
    def test_outside(self, marker, other):
        found = outside(marker, [other])
        assert found is not None
        for environment in ENVIRONMENTS:
            wanted = not marker or Marker(marker).evaluate(environment)
            wanted = wanted and not Marker(other).evaluate(environment)
            assert Marker(found).evaluate(environment) is wanted, (found, environment)

    def test_several(self):
        assert outside("", [HERE, HERE]) == ELSEWHERE
        found = outside("", [HERE, "sys_platform == 'win32'"])
        assert found == f"({ELSEWHERE}) and sys_platform != 'win32'"

    @pytest.mark.parametrize(
        "other",
        [
            "",
            "python_full_version ~= '3.12'",
            "sys_platform === 'linux'",
            "sys_platform == 'linux' and",
            "(sys_platform == 'linux'",
            "sys_platform == 'linux')",
            "(" * 100 + "sys_platform == 'linux'" + ")" * 100,
            "(" * 5_000,
            "sys_platform == 'linux' and " * 1_000 + "sys_platform == 'linux'",
        ],
    )
    def test_what_has_no_opposite(self, other):
        assert outside("", [other]) is None

    def test_nowhere(self):
        assert outside(HERE, [HERE]) is None


class TestRequirements:
    TEXT = f"""\
# of uv
cupy==14.2.0 \\
    --hash=sha256:{"a" * 64} \\
    --hash=sha256:{"b" * 64}
    # via project
cupy-cuda13x==14.2.0 ; {HERE} \\
    --hash=sha256:{"c" * 64}
    # via cupy
"""

    def test_where_it_is_another_project(self):
        said = []
        found = requirements.without_redirects(self.TEXT, redirects(said))
        assert found == self.TEXT.replace("cupy==14.2.0 \\", f"cupy==14.2.0 ; {ELSEWHERE} \\")
        assert said == ["cupy 14.2.0 is cupy-cuda13x here, which is exported in its place"]

    @pytest.mark.parametrize("end", ["\n", "\r\n"])
    def test_without_other_wheels(self, end):
        text = self.TEXT.replace("\n", end)
        found = requirements.without_redirects(text, redirects(has_others=False))
        rest = text[text.index("cupy-cuda13x") :]
        assert found == f"# of uv{end}# cupy 14.2.0 is cupy-cuda13x here{end}{rest}"

    def test_everywhere(self):
        text = "cupy==14.2.0              # via project\ncupy-cuda13x==14.2.0      # via cupy\n"
        found = requirements.without_redirects(text, redirects())
        assert found == "# cupy 14.2.0 is cupy-cuda13x here\n" + text.splitlines(True)[1]

    def test_annotations_on_the_line(self):
        text = f"cupy==14.2.0  # via project\ncupy-cuda13x==14.2.0 ; {HERE}  # via cupy\n"
        found = requirements.without_redirects(text, redirects()).splitlines(True)
        assert found == [
            f"cupy==14.2.0 ; {ELSEWHERE}  # via project\n",
            text.splitlines(True)[1],
        ]

    def test_its_project_is_not_exported(self):
        said = []
        found = requirements.without_redirects("cupy==14.2.0\nplain==1.0\n", redirects(said))
        assert found == "# cupy 14.2.0 is cupy-cuda13x here\nplain==1.0\n"
        assert said == ["cupy 14.2.0 is cupy-cuda13x here, which is not exported"]

    def test_another_project_on_other_platforms(self):
        said = []
        found = requirements.without_redirects(self.TEXT, redirects(said, is_here=False))
        assert f"cupy==14.2.0 ; {ELSEWHERE} \\\n" in found
        assert said == [
            "cupy 14.2.0 is cupy-cuda13x on other platforms, which is exported in its place"
        ]
        text = f"cupy==14.2.0 ; {HERE}  # via project\nplain==1.0\n"
        said.clear()
        assert requirements.without_redirects(text, redirects(said, is_here=False)) == text
        assert said == []


def lock(wheels, marker="", more=""):
    return f"""\
lock-version = "1.0"

[[packages]]
name = "cupy"
version = "14.2.0"
{more}{wheels}

[[packages]]
name = "cupy-cuda13x"
version = "14.2.0"
{marker}wheels = [{{ url = "https://files.test/cupy_cuda13x-14.2.0-py3-none-any.whl" }}]
"""


class TestPylock:
    MADE = f'{{ url = "{URL}", hashes = {{ sha256 = "ce" }} }}'
    OWN = f'{{ url = "{OWN}", hashes = {{ sha256 = "72" }} }}'
    MARKER = f'marker = "{HERE}"\n'

    def test_where_it_is_another_project(self):
        text = lock(f"wheels = [\n    {self.MADE},\n    {self.OWN},\n]", self.MARKER)
        found = pylock.without_redirects(text, redirects())
        more = f'marker = "{ELSEWHERE}"\n'
        assert found == lock(f"wheels = [{self.OWN}]", self.MARKER, more)

    def test_with_a_marker_and_sources(self):
        sdist = 'sdist = { url = "https://files.test/cupy-14.2.0.tar.gz" }\n'
        own = "marker = \"python_full_version >= '3.12'\"\n"
        text = lock(f"wheels = [{self.MADE}]", self.MARKER, own + sdist)
        (cupy, _) = toml.loads(pylock.without_redirects(text, redirects()))["packages"]
        assert cupy == {
            "name": "cupy",
            "version": "14.2.0",
            "marker": f"python_full_version >= '3.12' and ({ELSEWHERE})",
            "sdist": {"url": "https://files.test/cupy-14.2.0.tar.gz"},
        }

    @pytest.mark.parametrize("marker", ["", MARKER])
    def test_it_is_left_out(self, marker):
        text = lock(f"wheels = [{self.MADE}]", marker)
        found = pylock.without_redirects(text, redirects())
        assert [item["name"] for item in toml.loads(found)["packages"]] == ["cupy-cuda13x"]
        assert found == text[: text.index("[[")] + text[text.rindex("[[") :]

    def test_others_are_as_they_were(self):
        text = lock(f"wheels = [{self.OWN}]")
        assert pylock.without_redirects(text, redirects()) == text
