"""A directory with many faults, each in a project of its own: all are found, none is invented."""

import json
import os
import zipfile

import pytest
from wheel_files import make_variant_json

V3 = {"x86_64": {"level": ["v3"]}}
V4 = {"x86_64": {"level": ["v4"]}}
SCHEMAS = "https://variants-schema.wheelnext.dev/"


class Site:
    """A directory of wheels, and what is wrong with it."""

    def __init__(self, folder, build_wheel, variants):
        self.folder = folder
        self.variants = variants
        self._build = build_wheel
        self.planted = set()

    def wheel(self, project, label=None, tree=None, *, tags="py3-none-any", **more):
        """Build a wheel whose variant.json is *tree*."""
        name = f"{project}-1.0-{tags}{f'-{label}' if label else ''}.whl"
        return self._build(name, folder=self.folder, variant=tree, **more)

    def release(self, project, **more):
        """Two variants that fit each other."""
        self.wheel(project, "null", make_variant_json("null"), **more)
        self.wheel(project, "x86_64_v3", make_variant_json("x86_64_v3", V3), **more)

    def plant(self, path, *codes):
        self.planted |= {(code, os.path.basename(path)) for code in codes}

    def edit(self, project, **variants):
        """Change the metadata of a release; return its path."""
        path = self.folder / f"{project}-1.0-variants.json"
        tree = json.loads(path.read_text())
        tree["variants"].update(variants)
        path.write_text(json.dumps(tree))
        return path


@pytest.fixture
def site(tmp_path, build_wheel, variants):
    return Site(tmp_path / "dist", build_wheel, variants)


def plant_before_indexing(site):
    """Faults that `variants index` does not care about."""
    for number, markers in enumerate(
        (
            "variant_label == 'x86_64_v4'",
            "'nvidia' in variant_namespaces",
            "'x86_64 :: level :: v2' in variant_properties",
        )
    ):
        good = ["a; variant_label == 'x86_64_v3'", "b; 'x86_64 :: level' not in variant_features"]
        site.release(f"marker{number}", requires=[*good, f"c; {markers}"])
        # Told once, with the first wheel that has it.
        site.plant(f"marker{number}-1.0-py3-none-any-null.whl", "marker-never-true")
    for number, requires in enumerate(("a b", "a; variant_label > 'x'")):
        site.plant(site.wheel(f"requires{number}", requires=[requires]), "invalid-dependency")
    site.plant(site.wheel("many", requires=["a"] * 5001), "invalid-wheel")
    for name, edit, code in (
        ("unlisted", lambda text: text.replace("unlisted/__init__", "x"), "record-incomplete"),
        ("recordless", lambda text: None, "record-missing"),
        ("columns", lambda text: f"{text}a,b\n", "record-invalid"),
    ):
        site.plant(site.wheel(name, record=edit), code)
    for label in ("a", "b"):
        site.wheel("equal", label, make_variant_json(label, V3))
    site.plant("equal-1.0-variants.json", "same-properties")
    bare = make_variant_json("x", V3)
    del bare["$schema"]
    old = {"$schema": f"{SCHEMAS}peps/825/v0.1.9.json"}
    for name, tree, code in (
        ("level", make_variant_json("x", {"x86_64": {"level": ["v9"]}}), "unknown-value"),
        ("unsorted", make_variant_json("x", {"x86_64": {"level": ["v4", "v3"]}}),
         "values-unsorted"),
        ("colour", make_variant_json("x", V3, colour="red"), "unknown-key"),
        ("bare", bare, "schema-missing"),
        ("new", make_variant_json("x", V3, **old), "schema-unknown"),
    ):  # fmt: skip
        site.plant(site.wheel(name, "x", tree), code)
    site.plant("level-1.0-variants.json", "unknown-value")


def plant_after_indexing(site):
    """Faults that come in later, by hand."""
    folder = site.folder
    for project in ("faultless", "gone", "other", "named", "pages", "sidecar", "bytes"):
        site.release(project)
    site.variants("index", folder)

    site.plant(site.edit("gone", lost=V4), "label-without-wheel")
    site.plant(site.edit("other", x86_64_v3=V4), "index-mismatch")
    site.edit("named").rename(folder / "Named-1.0-variants.json")
    site.plant("Named-1.0-variants.json", "index-filename", "not-listed")
    sidecar = folder / "sidecar-1.0-py3-none-any-null.whl.metadata"
    sidecar.write_text(sidecar.read_text() + "Requires-Dist: left-pad\n")
    site.plant(sidecar, "core-metadata-mismatch")
    (folder / "simple" / "bytes" / "index.v1_json").write_text("{'.whl")
    site.plant("index.v1_json", "invalid-page")

    site.plant("faultless-1.0-variants.json", "label-not-indexed")
    site.plant(folder, "index-metadata-missing", "no-fallback")
    tree = make_variant_json("x", V3)
    future = make_variant_json("x", V3, **{"$schema": f"{SCHEMAS}v7.0.0.json"})
    windows = site.wheel("twice", "x", make_variant_json("x", V4), tags="py3-none-win_amd64")
    for path, *codes in (
        [site.wheel("faultless", "x86_64_v4", make_variant_json("x86_64_v4", V4))],
        [site.wheel("late", "null", make_variant_json("null"))],
        [site.wheel("unlabelled", None, tree), "label-missing"],
        [site.wheel("mislabelled", "y", tree), "label-mismatch"],
        [site.wheel("empty", "x", ""), "invalid-metadata"],
        [site.wheel("future", "x", future), "unsupported-schema"],
        [site.wheel("contents", "x"), "metadata-missing"],
        [site.wheel("twice", "x", tree)],
        [windows, "inconsistent-wheels"],
        [folder / "damaged-1.0-py3-none-any.whl", "invalid-wheel"],
        [folder / "renamed-1.0-py3-none-any.whl", "identity-mismatch"],
    ):
        site.plant(path, "not-listed", *codes)
    (folder / "damaged-1.0-py3-none-any.whl").write_bytes(b"PK")
    with zipfile.ZipFile(folder / "renamed-1.0-py3-none-any.whl", "w") as archive:
        info = "renamed-1.0.dist-info"
        archive.writestr(f"{info}/METADATA", "Name: was\nVersion: 1.0\n")
        archive.writestr(f"{info}/RECORD", f"{info}/METADATA,,\n{info}/RECORD,,\n")


def test_all_found_and_none_invented(site):
    plant_before_indexing(site)
    plant_after_indexing(site)
    (site.folder / "pages-1.0-py3-none-any-null.whl").unlink()
    for name in ("index.html", "index.v1_json"):
        # Files that changed since they were listed as well.
        site.plant(name, "page-file-missing", "page-mismatch")
    site.plant("pages-1.0-variants.json", "label-without-wheel")
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
