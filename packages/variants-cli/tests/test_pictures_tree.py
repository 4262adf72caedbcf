"""The decision tree of a release: its leaf is the engine's choice, for every machine."""

from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pep_variants.choose.ranking import rank
from pep_variants.formats.reader import read_metadata
from pep_variants.model.metadata import Metadata, ProviderInfo
from pep_variants.model.platform import Platform, Support
from variants_cli import matrices
from variants_cli.matrix.combination import combine, metadata_of
from variants_cli.matrix.reading import read_matrix
from variants_cli.pictures import decision_tree
from variants_cli.pictures.coverage import cover, optional_namespaces
from variants_cli.pictures.decision_tree import Leaf, Question, TreeTooLarge, grow, questions
from variants_cli.pictures.machines import read_machines
from variants_cli.pictures.outline import outline
from variants_cli.pictures.provider_order import Chain, ProviderOrder, learn_order

FOLDER = Path(matrices.__path__[0])
FILES = sorted(path.name for path in FOLDER.glob("*.toml"))
MACHINES = read_machines()
PLATFORMS = [machine.platform for machine in MACHINES]


def release(name):
    matrix = read_matrix(FOLDER / name)
    return metadata_of(matrix, combine(matrix))


RELEASES = {name: release(name) for name in FILES}


@pytest.mark.parametrize("name", FILES)
def test_every_named_machine_gets_what_the_engine_chooses(name):
    metadata = RELEASES[name]
    order = learn_order(metadata, PLATFORMS)
    for enabled in ((), *((namespace,) for namespace in optional_namespaces(metadata))):
        tree = grow(metadata, order, enabled)
        small = grow(metadata, order, enabled, several=False)
        for choice in cover(metadata, MACHINES, enabled).choices:
            assert small.decide(choice.ranking.platform) == choice.label, choice.machine.name
            assert tree.decide(choice.ranking.platform) == choice.label, choice.machine.name
            assert read(outline(small), choice.ranking.platform) == choice.label


def read(step, platform):
    """The end to which an outline leads: from top to bottom, the first branch that holds."""
    while not isinstance(step, Leaf):
        step = next(
            branch.to
            for branch in step.branches
            if all(
                set(values) & set(platform.support(namespace).features.get(feature, ()))
                for namespace, feature, values in branch.conditions
            )
        )
    return step.label


VALUES = st.sampled_from(("a", "b", "c", "d"))
LADDER = ("v4", "v3", "v2", "v1")
"""Values of the features called ``level``: one implies those that follow."""
NAMESPACES = ("gpu", "x86_64", "aarch64", "static")
FEATURES = ("level", "model", "extension")


@st.composite
def metadata_of_random_variants(draw):
    variants = {}
    for number in range(draw(st.integers(0, 12))):
        properties = {}
        for namespace in draw(st.lists(st.sampled_from(NAMESPACES), unique=True, max_size=3)):
            features = {}
            for feature in draw(
                st.lists(st.sampled_from(FEATURES), unique=True, min_size=1, max_size=2)
            ):
                wanted = st.sampled_from(LADDER) if feature == "level" else VALUES
                found = draw(st.lists(wanted, unique=True, min_size=1, max_size=3))
                features[feature] = tuple(sorted(found))
            properties[namespace] = features
        if properties:
            variants[f"label{number}"] = properties
    if draw(st.booleans()):
        variants["null"] = {}
    orders = st.lists(VALUES, unique=True, max_size=3).map(tuple)
    return Metadata(
        tuple(draw(st.permutations(NAMESPACES))),
        variants,
        {
            "static": ProviderInfo(
                static={"model": ("b", "a"), "level": LADDER[1:]}, optional=draw(st.booleans())
            )
        },
        {"gpu": tuple(draw(st.permutations(FEATURES))[: draw(st.integers(0, 3))])},
        {"gpu": {"model": draw(orders), "level": tuple(draw(st.permutations(LADDER))[:2])}},
    )


def order_of(metadata):
    """How the providers of the test list what they support."""
    static = metadata.providers["static"].static
    features, values, chains = {}, {}, {}
    for namespace in NAMESPACES:
        used = metadata.used_values(namespace)
        known = static if namespace == "static" else FEATURES
        features[namespace] = tuple(dict.fromkeys((*(n for n in known if n in used), *used)))
        for name, found in used.items():
            listed = LADDER if name == "level" else found
            if namespace == "static":
                listed = (*static.get(name, ()), *found)
            values[namespace, name] = tuple(dict.fromkeys(v for v in listed if v in found))
            if name == "level":
                chains[namespace, name] = Chain(tuple(v for v in LADDER if v in found))
    return ProviderOrder(features, values, chains)


@st.composite
def random_platforms(draw, most):
    found = {}
    for namespace in ("gpu", draw(st.sampled_from(("x86_64", "aarch64")))):
        features = {}
        for feature in FEATURES:
            if feature == "level":
                values = LADDER[draw(st.integers(0, 4)) :]
            else:
                values = tuple(sorted(draw(st.lists(VALUES, unique=True, max_size=most))))
            if values:
                features[feature] = values
        found[namespace] = Support(features)
    return found


def with_static(metadata, namespaces, enabled):
    """Add what `Detector` adds: static properties, of an optional provider only if enabled."""
    provider = metadata.providers["static"]
    if not provider.optional or "static" in enabled:
        namespaces = {**namespaces, "static": Support(provider.static)}
    return Platform(namespaces)


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_the_leaf_is_what_the_engine_chooses(data):
    metadata = data.draw(metadata_of_random_variants())
    several = data.draw(st.booleans())
    enabled = data.draw(st.sampled_from(((), ("static",))))
    try:
        tree = grow(metadata, order_of(metadata), enabled, several=several)
    except TreeTooLarge:
        assume(False)
    for namespaces in data.draw(st.lists(random_platforms(4 if several else 1), max_size=8)):
        platform = with_static(metadata, namespaces, enabled)
        labels = rank(metadata, platform).labels
        assert tree.decide(platform) == (labels[0] if labels else None)
        assert read(outline(tree), platform) == (labels[0] if labels else None)


def test_answers_about_the_cpu_that_lead_to_the_same_but_do_not_imply_each_other():
    # With v3 of gpu and its model a: model b of the CPU without the extension, and model a.
    metadata = Metadata(
        NAMESPACES,
        {
            "label0": {"gpu": {"level": ("v4",)}, "x86_64": {"level": ("v3", "v4")}},
            "label1": {
                "static": {"level": ("v3",)},
                "gpu": {"level": ("v3", "v4")},
                "x86_64": {"model": ("a", "b")},
            },
            "label2": {
                "x86_64": {"model": ("b",), "extension": ("a",)},
                "gpu": {"level": ("v3", "v4"), "model": ("a",)},
            },
        },
        {"static": ProviderInfo(static={"model": ("b", "a"), "level": LADDER[1:]})},
    )
    found = {
        "gpu": Support({"level": LADDER[1:], "model": ("a",)}),
        "x86_64": Support({"level": LADDER, "model": ("b",)}),
    }
    platform = with_static(metadata, found, ())
    tree = grow(metadata, order_of(metadata), several=False)
    assert rank(metadata, platform).labels[0] == tree.decide(platform) == "label1"
    assert read(outline(tree), platform) == "label1"


CHAIN = ProviderOrder(
    {"x86_64": ("level", "avx")},
    {("x86_64", "level"): ("v4", "v3"), ("x86_64", "avx"): ("on",)},
    {("x86_64", "level"): Chain(("v4", "v3"))},
)
NO_CHAIN = ProviderOrder(CHAIN.features, CHAIN.values, {})


@pytest.mark.parametrize(
    ("order", "texts"),
    [
        # v4 without AVX is part of what follows from v3 only where v4 implies v3.
        (CHAIN, ["x86-64-v4 with avx", "x86-64-v3", "another CPU"]),
        (NO_CHAIN, ["x86-64-v4 with avx", "x86-64-v4", "x86-64-v3", "another CPU"]),
    ],
)
def test_answer_about_the_cpu_is_left_out_only_where_the_next_one_has_it(order, texts):
    metadata = Metadata(
        ("x86_64",),
        {
            "fast": {"x86_64": {"level": ("v4",), "avx": ("on",)}},
            "plain": {"x86_64": {"level": ("v3", "v4")}},
        },
    )
    step = outline(grow(metadata, order, several=False))
    assert [branch.text for branch in step.branches] == texts
    values = ("v4", "v3") if order is CHAIN else ("v4",)
    platform = Platform({"x86_64": Support({"level": values})})
    assert rank(metadata, platform).labels[0] == read(step, platform) == "plain"


@pytest.mark.parametrize("name", FILES)
@given(st.data())
@settings(max_examples=20, deadline=None)
def test_random_machines_of_the_shipped_matrices(name, data):
    metadata = RELEASES[name]
    order = learn_order(metadata, PLATFORMS)
    tree = grow(metadata, order)
    family = data.draw(st.sampled_from(("x86_64", "aarch64")))
    found = {}
    for namespace in ("nvidia", "amd", family):
        features = {}
        for feature in order.features.get(namespace, ()):
            chain = order.chains.get((namespace, feature))
            if chain:
                values = chain.steps[data.draw(st.integers(0, len(chain.steps))) :]
            else:
                known = st.sampled_from(order.values[namespace, feature])
                values = data.draw(st.lists(known, unique=True, max_size=3))
            listed = order.values[namespace, feature]
            features[feature] = tuple(value for value in listed if value in values)
        found[namespace] = Support(features)
    labels = rank(metadata, Platform(found)).labels
    assert tree.decide(Platform(found)) == (labels[0] if labels else None)
    assert read(outline(tree), Platform(found)) == (labels[0] if labels else None)


def variants(**properties):
    return Metadata(("nvidia", "x86_64"), properties)


def test_questions_are_in_the_order_of_the_ranking():
    metadata = RELEASES["torch-2.10.0-cuda13.0.toml"]
    tree = grow(metadata, learn_order(metadata, PLATFORMS), several=False)
    first = tree.root
    assert (first.namespace, first.feature) == ("nvidia", "cuda_version_lower_bound")
    (answer,) = first.answers
    assert answer.values == ("13.0",)
    second = answer.node
    assert second.feature == "sm_arch"
    assert [a.values for a in second.answers][:2] == [("121_real",), ("120_real",)]
    # Whoever has no new driver is asked for the CPU, as are those with another GPU.
    assert second.otherwise is first.otherwise
    assert {(q.namespace, q.feature) for q in questions(tree)} == {
        ("nvidia", "cuda_version_lower_bound"),
        ("nvidia", "sm_arch"),
        ("x86_64", "level"),
        ("x86_64", "avx"),
        ("aarch64", "version"),
        ("aarch64", "sve2"),
    }


def test_what_changes_nothing_is_not_asked():
    metadata = variants(one={"nvidia": {"sm_arch": ("80_real", "90_real")}}, null={})
    tree = grow(metadata, learn_order(metadata, PLATFORMS))
    (question,) = questions(tree)
    assert [answer.values for answer in question.answers] == [("90_real", "80_real")]
    assert question.otherwise.label == "null"


def test_without_variants_there_is_nothing_to_ask():
    tree = grow(Metadata(("nvidia",)), ProviderOrder({"nvidia": ()}, {}, {}))
    assert isinstance(tree.root, Leaf)
    assert tree.root.label is None
    assert tree.decide(Platform()) is None


def test_second_gpu_is_asked_for_where_it_matters():
    metadata = variants(
        new={"nvidia": {"sm_arch": ("90_real",)}, "x86_64": {"level": ("v4",)}},
        old={"nvidia": {"sm_arch": ("80_real",)}},
    )
    order = learn_order(metadata, PLATFORMS)
    both = Platform({"nvidia": Support({"sm_arch": ("90_real", "80_real")})})
    tree = grow(metadata, order)
    asked = [question.feature for question in questions(tree)]
    assert asked == ["sm_arch", "level", "sm_arch"]
    assert tree.decide(both) == "old" == rank(metadata, both).labels[0]
    alone = grow(metadata, order, several=False)
    assert [question.feature for question in questions(alone)] == ["sm_arch", "level"]


def test_too_many_questions(monkeypatch):
    monkeypatch.setattr(decision_tree, "MAXIMUM", 20)
    metadata = RELEASES["torch-2.10.0-cuda13.0.toml"]
    with pytest.raises(TreeTooLarge, match="select variants with --only"):
        grow(metadata, learn_order(metadata, PLATFORMS))


def test_chains_are_learned_from_machines():
    metadata = read_metadata(
        b"""{"default-priorities": {"namespace": ["nvidia", "amd", "x86_64"]}, "variants": {
        "one": {"nvidia": {"cuda_version_lower_bound": ["12.0", "12.8"],
                           "cuda_version_upper_bound": ["13", "14"], "sm_arch": ["90_real"]},
                "amd": {"rocm_version": ["6.3", "6.4"]},
                "x86_64": {"level": ["v2", "v3"], "avx": ["on"], "avx512_bf16": ["on"]}}}}""",
        "test",
    )
    order = learn_order(metadata, PLATFORMS)
    assert order.chains["nvidia", "cuda_version_lower_bound"].steps == ("12.8", "12.0")
    # A driver older than 13 is one older than 14, and 14 is listed first.
    assert order.chains["nvidia", "cuda_version_upper_bound"] == Chain(("13", "14"))
    assert order.values["nvidia", "cuda_version_upper_bound"] == ("14", "13")
    assert ("amd", "rocm_version") not in order.chains  # each machine has one
    assert order.features["x86_64"] == ("level", "avx512_bf16", "avx")


def test_node_classes():
    metadata = variants(one={"nvidia": {"sm_arch": ("90_real",)}})
    tree = grow(metadata, learn_order(metadata, PLATFORMS))
    assert [type(node) for node in tree.nodes()] == [Question, Leaf, Leaf]
