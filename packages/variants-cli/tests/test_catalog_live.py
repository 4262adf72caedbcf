"""`variants catalog check --live` against recorded layouts of indexes, served here."""

import os

import pytest

from pep_variants import directories
from support.index_server import Resource, served

HEAD = """catalog-version = "1"
[project]
name = "{name}"
documentation = "https://example.org"
"""
NAMESPACES = 'default-priorities.namespace = ["nvidia"]\n'
NEEDS = 'properties = ["nvidia :: cuda_version_lower_bound :: 12.0"]\n'


@pytest.fixture
def server():
    with served() as server:
        yield server


@pytest.fixture(autouse=True)
def settings(server, tmp_path, monkeypatch):
    """No settings but an index of the user's own."""
    for name in ("user_config", "system_config"):
        monkeypatch.setattr(directories, name, lambda: tmp_path / "none")
    for name in list(os.environ):
        if name.startswith(("VARIANTS_", "PIP_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_INDEX_URL", server.simple)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def check(variants, tmp_path):
    """Write an entry and check it; give the result, severities and codes."""

    def check(*tables, name="torch", namespaces=NAMESPACES):
        path = tmp_path / f"{name}.toml"
        path.write_text(HEAD.format(name=name) + namespaces + "".join(tables))
        result = variants("catalog", "check", path, "--live", "--json")
        found = result.json["findings"]
        assert result.code == any(item["severity"] == "error" for item in found)
        return result, [(item["severity"], item["code"], item["place"]) for item in found]

    return check


def page(*links, hashes=True):
    """A page as PyTorch's index has them: HTML, the plus sign percent-encoded."""
    digest = f"#sha256={'0' * 64}" if hashes else ""
    anchors = "".join(
        f'<a href="{link.replace("+", "%2B")}{digest}">{link.rpartition("/")[2]}</a><br/>\n'
        for link in links
    )
    body = f"<!DOCTYPE html>\n<html><body><h1>Links</h1>\n{anchors}</body></html>"
    return Resource(body.encode(), kind="text/html")


def cuda(server, label="cuda12.8", backend="cu128", versions=""):
    """The table of a backend of PyTorch's index."""
    return (
        f'[[variant]]\nlabel = "{label}"\nindex = "{server.url}/whl/{backend}"\n'
        f'local = "{backend}"\nversions = "{versions}"\n{NEEDS}'
    )


def cpu(server):
    return f'[[variant]]\nlabel = "null"\nindex = "{server.url}/whl/cpu"\nlocal = ["cpu", ""]\n'


def put(server, backend, *names, name="torch", **options):
    links = [f"/whl/{backend}/{each}" for each in names]
    server.resources[f"/whl/{backend}/{name}/"] = page(*links, **options)


def test_pytorch(server, check):
    """Percent-encoded local versions; wheels for macOS have none."""
    put(server, "cu128", "torch-2.9.0+cu128-cp312-cp312-manylinux_2_28_x86_64.whl",
        "torch-2.9.0+cu128-cp312-cp312-win_amd64.whl")  # fmt: skip
    put(server, "cpu", "torch-2.9.0+cpu-cp312-cp312-manylinux_2_28_x86_64.whl",
        "torch-2.9.0-cp312-none-macosx_11_0_arm64.whl")  # fmt: skip
    assert check(cuda(server), cpu(server))[1] == []
    put(server, "cpu", "torch-2.9.0-cp312-none-macosx_11_0_arm64.whl")
    _, found = check(cpu(server).replace('["cpu", ""]', '"cpu"'))
    assert ("error", "variant-missing", "variant 1") in found


def test_redirected_to_another_host(server, check):
    """The page, and with it its relative links, may be elsewhere."""
    with served() as files:
        server.resources["/whl/cu128/torch/"] = Resource.redirect(f"{files.url}/r2/torch/")
        files.resources["/r2/torch/"] = page("torch-2.9.0+cu128-cp312-cp312-win_amd64.whl")
        assert check(cuda(server))[1] == []


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Resource(b"gone", 404), "not found (HTTP status 404)"),
        (Resource(b"no", 403), "access denied (HTTP status 403)"),
        (page(), "lists no wheels"),
        (Resource(b"{", kind="application/vnd.pypi.simple.v1+json"), "is not JSON"),
    ],
)
def test_sources_that_cannot_be_read(server, check, answer, reason):
    """One finding for a host and a reason, however many pages."""
    for backend in ("cu126", "cu128"):
        server.resources[f"/whl/{backend}/torch/"] = answer
    put(server, "cpu", "torch-2.9.0+cpu-cp312-cp312-any.whl")
    result, found = check(cuda(server), cuda(server, "cuda12.6", "cu126"), cpu(server))
    assert found == [("error", "source-unusable", "")]
    (finding,) = result.json["findings"]
    assert finding["file"] == server.url
    assert "torch: variants cuda12.8, cuda12.6 from" in finding["message"]
    assert reason in finding["message"]


def test_new_and_missing_versions(server, check, own):
    versions = ("2.9.0", "2.10.0", "2.11.0rc1")
    put(server, "cu128", *(f"torch-{each}+cu128-cp312-cp312-any.whl" for each in versions))
    put(server, "cpu", "torch-2.10.0+cpu-cp312-cp312-any.whl")
    assert check(cuda(server), cpu(server))[1] == []
    put(server, "cpu", "torch-2.11.0+cpu-cp312-cp312-any.whl")
    assert check(cuda(server), cpu(server))[1] == [("warning", "version-missing", "variant 1")]
    assert check(cuda(server, versions="<2.11"), cpu(server))[1] == []
    own("torch", "2.12.0")
    result, found = check(cuda(server, versions="<2.11"))
    assert found == [("warning", "version-new", "")]
    assert "torch has version 2.12.0, the newest with" in result.json["findings"][0]["message"]


def test_new_values_of_placeholders(server, check):
    """A build against a torch that the entry does not rank would never be chosen."""
    table = (
        'static-properties.priority.torch = ["2.12", "2.11"]\n'
        f'[[variant]]\nlabel = "cuda12_torch{{torch}}"\nindex = "{server.url}/whl/cu128"\n'
        'local = "cu.12.8.torch.{torch}"\n'
        + NEEDS.replace('12.0"]', '12.0", "priority :: torch :: {torch}"]')
    )
    head = 'default-priorities.namespace = ["nvidia", "priority"]\n'
    names = [f"torch-1.0+cu.12.8.torch.2.{minor}-cp312-cp312-any.whl" for minor in (11, 12)]
    put(server, "cu128", *names)
    assert check(table, namespaces=head)[1] == []
    put(server, "cu128", *names, "torch-1.0+cu.12.8.torch.2.13-cp312-cp312-any.whl")
    result, found = check(table, namespaces=head)
    assert found == [("error", "unknown-property", "variant 1.properties")]
    (finding,) = result.json["findings"]
    assert "'priority :: torch :: 2.13' of cuda12_torch2.13 is not in" in finding["message"]


def redirect(requirement):
    return f'[[variant]]\nlabel = "cuda12"\nrequires = ["{requirement}=={{version}}"]\n{NEEDS}'


@pytest.fixture
def own(server, build_wheel):
    """Return the function that puts wheels on the user's own index."""

    def own(name, *versions, extra=""):
        wheels = {}
        more = f">=3.8\nProvides-Extra: {extra}" if extra else None
        for version in versions:
            path = build_wheel(f"{name}-{version}-py3-none-any.whl", requires_python=more)
            wheels[path.name] = path.read_bytes()
        server.page(name.replace("_", "-"), wheels)

    return own


def test_other_names(server, check, own):
    own("app", "1.0")
    own("app_cu12", "1.0", "1.1")
    assert check(redirect("app-cu12"), name="app")[1] == []
    result, found = check(redirect("app-cu13"), name="app")
    assert ("error", "project-missing", "") in found
    assert f"app-cu13 is not on {server.simple}" in result.json["findings"][0]["message"]


def test_a_name_that_is_free(check, own):
    own("app_cu12", "1.0")
    _, found = check(redirect("app-cu12"), name="app")
    assert ("warning", "name-unregistered", "project.name") in found


def test_only_sources(server, check, own):
    """A project that has no wheels gives no variants."""
    own("app", "1.0")
    server.page("app-cu12", {"app_cu12-1.0.tar.gz": b""})
    result, found = check(redirect("app-cu12"), name="app")
    assert found == [("error", "variant-missing", "variant 1")]
    assert "has no wheel for cuda12" in result.json["findings"][0]["message"]


def test_extras(check, own):
    """Those of the newest version, of the project itself or of another one."""
    own("app", "1.0", extra="cuda12")
    own("app_gpu", "1.0", extra="cuda_12")
    assert check(redirect("{name}[cuda12]"), name="app")[1] == []
    assert check(redirect("app-gpu[cuda-12]"), name="app")[1] == []
    result, found = check(redirect("{name}[cuda13]"), name="app")
    assert found == [("error", "extra-missing", "variant 1")]
    assert result.json["findings"][0]["remedy"] == "use one that it has: cuda12"


def test_newer_without_the_variant(check, own):
    """The project's own wheels are the null variant: who has a GPU gets the newer one of these."""
    own("app", "1.0", "1.1")
    own("app_cu12", "1.0")
    null = '[[variant]]\nlabel = "null"\n'
    result, found = check(redirect("app-cu12"), null, name="app")
    assert found == [("warning", "version-missing", "variant 1")]
    assert "cuda12 has 1.0, other variants have 1.1" in result.json["findings"][0]["message"]
    own("app_cu12", "1.0", "1.1")
    assert check(redirect("app-cu12"), null, name="app")[1] == []
    own("app")
    assert ("error", "variant-missing", "variant 2") in check(
        redirect("app-cu12"), null, name="app"
    )[1]


def test_own_wheels(check, own):
    """A variant without source is of the project's own wheels, those that `local` marks."""
    own("app", "1.0", "1.1")
    table = f'[[variant]]\nlabel = "cuda12"\n{NEEDS}local = '
    assert check(table + '""\n', name="app")[1] == []
    _, found = check(table + '"cu12"\n', name="app")
    assert found == [("error", "variant-missing", "variant 1")]
    own("app", "1.0+cu12", "1.1")
    _, found = check(table + '"cu12"\n', name="app")
    assert [code for _, code, _ in found] == ["version-new"]


def test_more_requirements(check, own):
    own("app", "1.0")
    own("app_cu12", "1.0")
    table = redirect("app-cu12").replace('}"]', '}", "app-libs=={version}"]')
    assert check(table, name="app")[1] == [("error", "project-missing", "")]
    own("app_libs", "1.0")
    assert check(table, name="app")[1] == []


def test_variants_index(server, check, variants, tmp_path):
    index = f'variants-index = "{server.url}/variant"\n'
    server.resources["/variant/torch/"] = page("torch-2.9.0-cp312-cp312-any-cuda12.8.whl")
    assert check(index)[1] == []
    server.resources["/variant/torch/"] = page("torch-2.9.0-cp312-cp312-any.whl")
    assert check(index)[1] == [("error", "variant-missing", "project.variants-index")]
    del server.resources["/variant/torch/"]
    assert check(index)[1] == [("error", "source-unusable", "")]
