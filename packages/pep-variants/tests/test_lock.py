"""Lock files: names of wheels, the table `variants-json`, and what a machine installs."""

import copy

import pytest
from packaging.tags import parse_tag

from pep_variants._choose.preferences import Preferences, preferences_from_options
from pep_variants._lock.groups import choose_group
from pep_variants._lock.lock_selection import Machine, read_table, select_packages, write_table
from pep_variants._lock.wheels import filename_of, labels_of, lists_variants, without_labels
from pep_variants._model.platform import Platform, Support
from pep_variants.errors import LockError, MetadataError, NoSuchVariant

SCHEMAS = "https://variants-schema.wheelnext.dev/"
V0_1_1 = f"{SCHEMAS}peps/825/v0.1.1.json"
VARIANTS = {"null": {}, "a": {"ns": {"f": ["1"]}}, "b": {"ns": {"f": ["2"]}}}
MACHINE = Machine(
    {"python_version": "3.12", "python_full_version": "3.12.0"}, [*parse_tag("py3-none-any")]
)


def document(schema=V0_1_1, **more):
    return {
        "$schema": schema,
        "default-priorities": {"namespace": ["ns"]},
        "variants": copy.deepcopy(VARIANTS),
        **more,
    }


def wheel(label, project="demo"):
    name = f"{project}-1.0-py3-none-any{f'-{label}' if label else ''}.whl"
    return {"url": f"https://h/{name}", "hashes": {"sha256": "00"}}


def package(*labels, **more):
    table = {"variants-json": document()} if any(labels) else {}
    return {"name": "demo", "version": "1.0", "wheels": [*map(wheel, labels)], **table, **more}


def chosen(*packages, values=("1",), options=None, **more):
    """Return names and labels of what a machine that supports *values* installs."""
    platform = Platform({"ns": Support({"f": tuple(values)} if values else {})})
    tree = {"packages": list(packages)}
    selection = select_packages(
        tree, "x.toml", MACHINE, lambda _: platform, preferences_from_options(options or {}), **more
    )
    names = []
    for place, item in enumerate(selection.tree["packages"]):
        choice = selection.choices.get(place)
        assert not any(labels_of(item))
        names.append(f"{item['name']}-{choice.label}" if choice and choice.label else item["name"])
    return names


@pytest.mark.parametrize(
    ("table", "filename"),
    [
        ({"path": "folder/b%2B.whl", "url": "https://h/c.whl"}, "b%2B.whl"),
        ({"path": "folder\\b.whl"}, "b.whl"),
        ({"url": "https://h/f/c-1.0%2Bx-py3-none-any-a.whl?x=/y#z"}, "c-1.0+x-py3-none-any-a.whl"),
        ({"name": 3, "url": "https://h/c.whl"}, "c.whl"),
        ({"url": "https://[h/c.whl"}, ""),
        ({}, ""),
        (3, ""),
    ],
)  # fmt: skip
def test_filenames(table, filename):
    assert filename_of(table) == filename


@pytest.mark.parametrize("tree", [3, {}, {"packages": 3}, {"packages": [3, {}, {"wheels": 3}]}])
def test_trees_without_wheels(tree):
    assert not lists_variants(tree)
    if isinstance(tree, dict):
        assert without_labels(tree) == tree


class TestTable:
    @pytest.mark.parametrize("label", ["null", "00000000"])
    @pytest.mark.parametrize("spelled", ["null", "00000000"])
    def test_null_in_both_spellings(self, label, spelled):
        tree = document(f"{SCHEMAS}v0.0.3.json", providers={}, variants={spelled: {}, "a": {}})
        assert write_table([tree], [label])["variants"] == {spelled: {}}

    @pytest.mark.parametrize(
        ("schema", "kept"),
        [
            (SCHEMAS, {"providers", "note"}),
            (f"{SCHEMAS}v0.0.3.json", {"providers", "note"}),
            (f"{SCHEMAS}peps/825/v0.1.0.json", set()),
            (V0_1_1, set()),
            (f"{SCHEMAS}v0.2.0.json", {"providers", "note"}),
            ("https://packaging.python.org/variants/v1.3.0.json", {"providers", "note"}),
        ],
    )
    def test_only_what_the_schema_forbids_is_left_out(self, schema, kept):
        tree = document(schema, providers={}, note=1, nothing=None)
        table = write_table([tree], VARIANTS)
        assert table["$schema"] == schema
        assert set(table) == {"$schema", "default-priorities", "variants"} | kept
        assert write_table([table], VARIANTS) == table
        read_table(table, "x")

    def test_values_once(self):
        tree = document(variants={"a": {"ns": {"f": ["2", "1", "2"]}}})
        assert write_table([tree], ["a"])["variants"]["a"]["ns"]["f"] == ["2", "1"]
        with pytest.raises(MetadataError, match=r"x: variants\.a\.ns\.f: lists a value twice"):
            read_table(tree, "x")

    def test_documents_of_wheels_are_put_together(self):
        first = document(variants={"a": VARIANTS["a"]})
        second = document(variants={"b": VARIANTS["b"]})
        second["default-priorities"] = {"namespace": ["ns", "other"]}
        for documents in ([first, second], [second, first]):
            table = write_table(documents, ["a", "b"])
            assert table["default-priorities"] == {"namespace": ["ns", "other"]}
            assert set(table["variants"]) == {"a", "b"}


class TestSelecting:
    def test_nothing_fits(self):
        with pytest.raises(LockError, match=r"^x.toml: packages\[0\] \(demo\): none of its wheels"):
            chosen(package("a"), values=())
        assert chosen(package("a", sdist={"url": "https://h/x"}), values=()) == ["demo"]

    def test_without_variants(self):
        assert chosen(package("a", ""), options={"no-variants": True}) == ["demo"]
        with pytest.raises(LockError, match="only variant wheels of it are locked"):
            chosen(package("a"), options={"no-variants": True})

    def test_built_from_source(self):
        both = package("a", sdist={"url": "https://h/x"})
        assert chosen(both, from_source=lambda name: name == "demo") == ["demo"]
        assert chosen(package("a"), from_source=lambda _: True) == ["demo-a"]

    def test_packages_of_other_machines(self):
        other = package("b", name="other", marker="python_version < '3'")
        assert chosen(other, package("a")) == ["demo-a"]
        extra = package("a", marker="'x' in extras or 'g' in dependency_groups")
        assert chosen(extra) == []
        assert chosen(extra, extras=["x"]) == ["demo-a"]
        assert chosen(extra, groups=["g"]) == ["demo-a"]
        assert chosen(package("a", marker="no marker")) == ["demo-a"]

    def test_variants_go_with_the_versions_that_are_locked(self):
        built = document(variants={"null": {}, "a": {"abi_dependency": {"other": ["2"]}}})
        for version, expected in (("2.1", "demo-a"), ("1.0", "demo-null")):
            other = {"name": "other", "version": version, "wheels": [wheel("", "other")]}
            found = chosen(package("a", "null", **{"variants-json": built}), other)
            assert found == [expected, "other"]

    def test_labels_that_were_asked_for(self):
        assert chosen(package("a", "b", "null"), options={"variant": ["demo=null"]}) == [
            "demo-null"
        ]
        for given in (package("a"), package(""), package("null")):
            with pytest.raises(NoSuchVariant, match="has no variant 'b'"):
                chosen(given, options={"variant": ["demo=b"]})

    def test_dependencies_of_the_chosen_variant(self):
        requires = ["one; variant_label == 'a'", "two[x]; 'ns' not in variant_namespaces"]
        tree = {
            "packages": [
                package("a", "null", tool={"pep-variants": {"requires-dist": requires}}),
                package("", name="one"),
                package("", name="two"),
                package("", name="unused"),
            ],
            "tool": {"pep-variants": {"requirements": ["demo"]}},
        }
        for values, expected in ((("1",), ["demo", "one"]), ((), ["demo", "two"])):
            platform = Platform({"ns": Support({"f": values} if values else {})})
            selection = select_packages(tree, "", MACHINE, lambda _, found=platform: found)
            assert [item["name"] for item in selection.tree["packages"]] == expected

    def test_a_broken_table_is_told(self):
        problems = []
        given = package("a", "", **{"variants-json": {**document(), "x": 1}})
        selection = select_packages({"packages": [given]}, "", MACHINE, lambda _: Platform())
        (choice,) = selection.choices.values()
        problems += map(str, choice.selection.problems.values())
        assert problems == ["packages[0] (demo): variants-json: x: the schema has no such key"]
        assert choice.wheel == wheel("")


class TestGroups:
    """Tables of groups that come from anybody."""

    def choose(self, groups, variants=None, named=(), preferences=None):
        tree = {"tool": {"pep-variants": {"groups": groups, "variants": variants or {}}}}
        environment = {"sys_platform": "linux"}
        support = Platform({"ns": Support({"f": ("1",)})})
        return choose_group(
            tree, "x.toml", environment, lambda _: support, preferences or Preferences(), named
        )

    def builds(self, label):
        return {"builds": {"demo": label}}

    @pytest.mark.parametrize("groups", [[], "a", {"a": 1}, {"--group": {}}, {"/x/y.toml:dev": {}}])
    def test_no_groups(self, groups):
        """A name may be given to a program as an option."""
        assert self.choose(groups) is None

    @pytest.mark.parametrize("marker", ["(" * 9999, "nonsense", "extra == 'x'", "os_name == 'x'"])
    def test_markers(self, marker):
        assert self.choose({"a": {"environment": marker}}) is None
        with pytest.raises(LockError, match="no dependency group 'a' for this environment"):
            self.choose({"a": {"environment": marker}}, named=["a"])

    @pytest.mark.parametrize(
        ("label", "variants", "message"),
        [
            ("b", {"demo": document()}, "demo b needs ns :: f 2, this machine has 1; one that is"),
            ("a", {"demo": 1}, "demo a x.toml: demo: expected an object, found 1"),
            ("a", {}, "demo a "),
            ("\x1b[31m", {}, r"demo \\x1b\[31m is not asked for"),
        ],
    )
    def test_nothing_fits(self, label, variants, message):
        with pytest.raises(LockError, match=message):
            self.choose({"one": self.builds(label)}, variants)

    def test_the_group_for_cpus_where_none_fits(self):
        choice = self.choose(
            {"one": self.builds("b"), "cpu": self.builds("b")}, {"demo": document()}
        )
        assert (choice.name, choice.why) == ("cpu", "")
        assert choice.unfit == ("demo b needs ns :: f 2, this machine has 1",)

    def test_builds_that_are_asked_for(self):
        """By --variant: another group, also the one for CPUs, is not taken in their place."""
        groups = {"cpu": self.builds("null"), "one": self.builds("a"), "two": self.builds("b")}
        variants = {"demo": document()}
        for label, name in {"a": "one", "null": "cpu", "": "cpu"}.items():
            forced = Preferences(forced={"demo": label})
            assert self.choose(groups, variants, preferences=forced).name == name
        assert (
            self.choose(groups, variants, preferences=Preferences(use_variants=False)).name == "cpu"
        )
        for label, message in {
            "b": "demo b needs ns :: f 2",
            "c": "demo a is not asked for",
        }.items():
            with pytest.raises(LockError, match=message):
                self.choose(groups, variants, preferences=Preferences(forced={"demo": label}))

    @pytest.mark.parametrize("faults", [1, {"b": 1}, {"b": {"x": 1}}, {"b": {"ns :: f :: 1": 1}}])
    def test_known_faults(self, faults):
        broken = document(variants={"b": {"ns": {"f": ["1_broken"]}}})
        text = {"b": {"ns :: f :: 1": "has a known fault"}}
        groups = {"one": self.builds("b")}
        with pytest.raises(LockError, match="machine: demo b has a known fault; one"):
            self.choose(groups, {"demo": {**broken, "faults": text}})
        with pytest.raises(LockError, match="machine: demo b needs ns :: f 1_broken"):
            self.choose(groups, {"demo": {**broken, "faults": faults}})

    def test_many(self):
        """The least that is compared again and again would take minutes."""
        labels = [f"l{number}" for number in range(10_000)]
        groups = {name: self.builds(name) for name in labels}
        variants = {name: {"ns": {"f": ["2"]}} for name in labels}
        with pytest.raises(LockError, match="l0, l1, l2 and 9997 more is for this machine") as info:
            self.choose(groups, {"demo": document(variants=variants)})
        assert len(str(info.value)) < 400
        for name, number in zip(labels, range(6), strict=False):
            groups[name] = {"builds": {f"p{number}": "a"}}
        with pytest.raises(LockError, match="more than the 50000 builds that are compared"):
            self.choose(groups)
