V3 = {"x86_64": {"level": ["v3"], "avx2": ["on"]}}
NAME = "example_pkg-1.0-7-py3-none-any.manylinux_2_28_x86_64-x86_64_v3.whl"


def test_variant_wheel(build_wheel, variant_json, variants):
    wheel = build_wheel(NAME, variant=variant_json("x86_64_v3", V3))
    result = variants("inspect", wheel)
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines() == [
        f"filename    {NAME}",
        "name        example-pkg",
        "version     1.0",
        "build       7",
        "tags        py3-none-any",
        "            py3-none-manylinux_2_28_x86_64",
        "label       x86_64_v3",
        "schema      https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json",
        "namespaces  x86_64",
        "variants    x86_64_v3: x86_64 :: level :: v3, x86_64 :: avx2 :: on",
    ]
    assert variants("inspect", wheel, "--json").json == {
        "filename": NAME,
        "name": "example-pkg",
        "version": "1.0",
        "build": "7",
        "tags": ["py3-none-any", "py3-none-manylinux_2_28_x86_64"],
        "label": "x86_64_v3",
        "schema": "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json",
        "namespaces": ["x86_64"],
        "providers": {},
        "variants": {"x86_64_v3": V3},
        "problems": [],
    }


def test_plain_wheel(build_wheel, variants):
    wheel = build_wheel()
    assert variants("inspect", wheel).out.splitlines() == [
        f"filename  {wheel.name}",
        "name      example-pkg",
        "version   1.0",
        "tags      py3-none-any",
        "label     none (not a variant wheel)",
    ]
    tree = variants("inspect", wheel, "--json").json
    assert (tree["label"], tree["variants"], tree["problems"]) == (None, {}, [])


def test_providers_of_every_kind(build_wheel, variant_json, variants):
    tree = variant_json(
        "x",
        {"a": {"f": ["1"]}},
        namespaces=("a", "b", "c", "d"),
        providers={
            "a": {"requires": ["acme>=1", "helper"], "plugin-api": "acme.plugin:Acme"},
            "b": {"builtin": "b", "optional": True},
            "c": {"static-properties": {"f": ["2", "1"], "g": ["on"]}, "feature-order": ["g", "f"]},
            "d": {"requires": ["old"]},
        },
    )
    tree["$schema"] = "https://variants-schema.wheelnext.dev/v0.2.0.json"
    wheel = build_wheel("example_pkg-1.0-py3-none-any-x.whl", variant=tree)
    lines = variants("inspect", wheel).out.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("providers"))
    assert lines[start : start + 4] == [
        "providers   a: requires :: acme>=1, requires :: helper, plugin-api :: acme.plugin:Acme",
        "            b: builtin :: b, optional :: True",
        "            c: static-properties :: g :: on, static-properties :: f :: 2, "
        "static-properties :: f :: 1",
        "            d: requires :: old",
    ]
    assert variants("inspect", wheel, "--json").json["providers"] == {
        "a": {"requires": ["acme>=1", "helper"], "plugin-api": "acme.plugin:Acme"},
        "b": {"builtin": "b", "optional": True},
        "c": {"static-properties": {"g": ["on"], "f": ["2", "1"]}},
        "d": {"requires": ["old"]},
    }


def test_disagreement(build_wheel, variant_json, variants):
    """The other ways to disagree are in test_index."""
    wheel = build_wheel("demo-1.0-py3-none-any-v4.whl", variant=variant_json("v3", V3))
    problem = "the filename has label 'v4', but variant.json describes 'v3'"
    result = variants("inspect", wheel)
    assert result.code == 0
    assert result.out.splitlines()[-1].startswith("problems ")
    assert result.out.splitlines()[-1].endswith(problem)
    assert variants("inspect", wheel, "--json").json["problems"] == [problem]


def test_broken_metadata_is_one_line(build_wheel, variants):
    wheel = build_wheel(NAME, variant='{"variants": {"x\\n\\u001b[31m": {}}}')
    result = variants("inspect", wheel)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"error: {wheel}: example_pkg-1.0.dist-info/variant.json: ")
    assert "\x1b" not in result.err
    assert len(result.err.splitlines()) == 1
