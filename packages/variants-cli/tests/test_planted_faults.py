"""A directory with many faults, each in a project of its own: all are found, none is invented."""

import json
import os
import zipfile

import pytest

V3 = {"x86_64": {"level": ["v3"]}}
V4 = {"x86_64": {"level": ["v4"]}}
SCHEMAS = "https://variants-schema.wheelnext.dev/"


class Site:
    """A directory of wheels, and what is wrong with it."""

    def __init__(self, folder, build_wheel, variant_json, variants):
        self.folder = folder
        self.variant_json = variant_json
        self.variants = variants
        self._build = build_wheel
        self.planted = set()

    def wheel(
        self, project, label=None, properties=None, *, tags="py3-none-any", tree=None, **more
    ):
        name = f"{project}-1.0-{tags}{f'-{label}' if label else ''}.whl"
        if tree is None and label is not None:
            tree = self.variant_json(label, properties)
        return self._build(name, folder=self.folder, variant=tree, **more)

    def release(self, project, **more):
        """Two variants that fit each other."""
        self.wheel(project, "null", **more)
        return self.wheel(project, "x86_64_v3", V3, **more)

    def plant(self, code, file):
        self.planted.add((code, os.path.basename(file)))


def edited(path, edit):
    """Rewrite a JSON file."""
    tree = json.loads(path.read_text())
    edit(tree)
    path.write_text(json.dumps(tree))


def metadata_of(site, project):
    return site.folder / f"{project}-1.0-variants.json"


@pytest.fixture
def site(tmp_path, build_wheel, variant_json, variants):
    return Site(tmp_path / "dist", build_wheel, variant_json, variants)


def plant_before_indexing(site):
    """Faults that `variants index` does not care about."""
    for number, markers in enumerate(
        (
            "variant_label == 'x86_64_v4'",
            "'nvidia' in variant_namespaces",
            "'x86_64 :: level :: v2' in variant_properties",
        )
    ):
        project = f"marker{number}"
        good = ["a; variant_label == 'x86_64_v3'", "b; 'x86_64 :: level' not in variant_features"]
        site.release(project, requires=[*good, f"c; {markers}"])
        # Told once, with the first wheel that has it.
        site.plant("marker-never-true", f"{project}-1.0-py3-none-any-null.whl")
    site.plant("invalid-dependency", site.wheel("requirement", requires=["a b"]))
    site.plant("invalid-dependency", site.wheel("comparison", requires=["a; variant_label > 'x'"]))
    signed = site.wheel("unlisted", record=lambda text: text.replace("unlisted/__init__", "x"))
    site.plant("record-incomplete", signed)
    site.plant("record-missing", site.wheel("recordless", record=lambda text: None))
    site.plant("record-invalid", site.wheel("columns", record=lambda text: f"{text}a,b\n"))
    site.wheel("equal", "a", V3)
    site.wheel("equal", "b", V3)
    site.plant("same-properties", metadata_of(site, "equal"))
    site.plant("unknown-value", site.wheel("level", "x", {"x86_64": {"level": ["v9"]}}))
    site.plant("unknown-value", metadata_of(site, "level"))
    unsorted = site.variant_json("x", {"x86_64": {"level": ["v4", "v3"]}})
    site.plant("values-unsorted", site.wheel("unsorted", "x", tree=unsorted))
    extra = site.variant_json("x", V3, colour="red")
    site.plant("unknown-key", site.wheel("colour", "x", tree=extra))
    bare = site.variant_json("x", V3)
    del bare["$schema"]
    site.plant("schema-missing", site.wheel("bare", "x", tree=bare))
    old = site.variant_json("x", V3, **{"$schema": f"{SCHEMAS}peps/825/v0.1.9.json"})
    site.plant("schema-unknown", site.wheel("new", "x", tree=old))


def plant_after_indexing(site):
    """Faults that come in later, by hand."""
    folder = site.folder
    site.release("faultless")
    for project in ("gone", "other", "named", "pages", "sidecar", "bytes"):
        site.release(project)
    site.variants("index", folder)

    edited(metadata_of(site, "gone"), lambda tree: tree["variants"].update({"lost": V4}))
    site.plant("label-without-wheel", metadata_of(site, "gone"))
    edited(metadata_of(site, "other"), lambda tree: tree["variants"].update({"x86_64_v3": V4}))
    site.plant("index-mismatch", metadata_of(site, "other"))
    metadata_of(site, "named").rename(folder / "Named-1.0-variants.json")
    site.plant("index-filename", folder / "Named-1.0-variants.json")
    site.plant("not-listed", folder / "Named-1.0-variants.json")
    sidecar = folder / "sidecar-1.0-py3-none-any-null.whl.metadata"
    sidecar.write_text(sidecar.read_text() + "Requires-Dist: left-pad\n")
    site.plant("core-metadata-mismatch", sidecar)
    (folder / "simple" / "bytes" / "index.v1_json").write_text("{'.whl")
    site.plant("invalid-page", folder / "simple" / "bytes" / "index.v1_json")

    new = site.wheel("faultless", "x86_64_v4", V4)
    site.plant("label-not-indexed", metadata_of(site, "faultless"))
    site.plant("not-listed", new)
    wheel = site.wheel("late", "null")
    site.plant("index-metadata-missing", folder)
    site.plant("not-listed", wheel)
    for project, label, tree in (
        ("unlabelled", None, site.variant_json("x", V3)),
        ("mislabelled", "y", site.variant_json("x", V3)),
    ):
        path = site.wheel(project, label, tree=tree)
        site.plant("label-mismatch" if label else "label-missing", path)
        site.plant("not-listed", path)
    site.plant("index-metadata-missing", folder)
    path = site.wheel("empty", "x", tree="")
    site.plant("invalid-metadata", path)
    site.plant("not-listed", path)
    path = site.wheel(
        "future", "x", tree=site.variant_json("x", V3, **{"$schema": f"{SCHEMAS}v7.0.0.json"})
    )
    site.plant("unsupported-schema", path)
    site.plant("not-listed", path)
    path = folder / "contents-1.0-py3-none-any-x.whl"
    site.wheel("contents").rename(path)
    site.plant("metadata-missing", path)
    site.plant("not-listed", path)
    path = folder / "damaged-1.0-py3-none-any.whl"
    path.write_bytes(b"PK")
    site.plant("invalid-wheel", path)
    site.plant("not-listed", path)
    path = folder / "renamed-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("renamed-1.0.dist-info/METADATA", "Name: was\nVersion: 1.0\n")
        archive.writestr(
            "renamed-1.0.dist-info/RECORD",
            "renamed-1.0.dist-info/METADATA,,\nrenamed-1.0.dist-info/RECORD,,\n",
        )
    site.plant("identity-mismatch", path)
    site.plant("not-listed", path)
    wheel = site.wheel("twice", "x", V3)
    site.plant("no-fallback", site.folder)
    site.plant("not-listed", wheel)
    wheel = site.wheel("twice", "x", V4, tags="py3-none-win_amd64")
    site.plant("inconsistent-wheels", wheel)
    site.plant("not-listed", wheel)


def test_all_found_and_none_invented(site):
    plant_before_indexing(site)
    plant_after_indexing(site)
    (site.folder / "pages-1.0-py3-none-any-null.whl").unlink()
    for name in ("index.html", "index.v1_json"):
        site.plant("page-file-missing", name)
        # Files that changed since they were listed.
        site.plant("page-mismatch", name)
    site.plant("label-without-wheel", metadata_of(site, "pages"))
    result = site.variants("validate", site.folder, "--json")
    assert result.code == 1
    found = {(item["code"], os.path.basename(item["file"])) for item in result.json["findings"]}
    assert sorted(found - site.planted) == []
    assert sorted(site.planted - found) == []
    assert len({code for code, _ in found}) >= 30
    assert all(item["remedy"] and item["message"] for item in result.json["findings"])


def test_nothing_is_found_where_nothing_is_wrong(site):
    site.release("one", requires=["a; 'x86_64' in variant_namespaces", "b", "c; os_name == 'nt'"])
    site.wheel("two")
    assert site.variants("index", site.folder).code == 0
    result = site.variants("validate", site.folder)
    assert (result.code, result.out) == (0, "8 files checked: 0 errors, 0 warnings\n")
