"""Which version goes first, and the line about the other one; more cases are in `conformance`."""

import pytest
from world import cuda, short, target

from resolvelib_variants.resolution import RequirementSet, explain, parse_requirement
from support.wheels import Wheel

ALL = {"variant-before-version": [":all:"]}
NO_GPU = '[[provider]]\nnamespace = "x86_64"\n[provider.properties]\nlevel = ["v2"]\n'


@pytest.fixture
def two(world):
    return world.add(cuda("gpu", "2.0", "13.0"), cuda("gpu", "1.0", "12.8"))


class TestWhatIsAdvised:
    @pytest.mark.parametrize(
        ("wanted", "constraints"),
        [(["app", "gpu"], []), (["gpu"], ["gpu>1"]), (["gpu==2.0"], []), (["gpu>1"], [])],
    )
    def test_never_what_is_excluded(self, two, wanted, constraints):
        two.add(Wheel("app", "1.0", requires=("gpu>=2.0",)))
        found = two.resolve(*wanted, constraints=constraints)
        assert found.by_name["gpu"].label == "null"
        assert found.warnings == ()
        assert found.version_notes == {}

    def test_nor_by_an_explanation(self, two):
        for wanted, lines in (("gpu", 1), ("gpu>1", 0)):
            with two.resolver() as resolver:
                found = explain(resolver, parse_requirement(wanted), target())
            assert len(found.warnings) == lines


class TestWhatIsTaken:
    def test_as_data(self, two):
        found = two.resolve("gpu", options=ALL)
        assert short(found) == "gpu-1.0-cu128"
        note = found.version_notes["gpu"]
        assert found.warnings == (note.text,)
        why = "cu130 needs CUDA driver 13.0 or newer, this one supports up to 12.8"
        assert note[1:] == ("2.0", "1.0", "cu128", why)
        assert found.to_tree()["version_notes"]["gpu"] == note._asdict()

    def test_no_pre_release(self, two):
        two.add(cuda("gpu", "1.5rc1", "12.8"))
        assert two.names("gpu", pre=True, options=ALL) == "gpu-1.0-cu128"

    def test_others_speak_first(self, two):
        """The newest version of what needs it is not given up for an older one."""
        two.add(Wheel("app", "2.0", requires=("lib",)), Wheel("app", "1.0"))
        two.add(Wheel("lib", "1.0", requires=("gpu>=2.0",)))
        assert two.names("gpu", "app", options=ALL) == "app-2.0 gpu-2.0-null lib-1.0"

    def test_targets_of_one_lock_have_to_agree(self, two):
        wanted = RequirementSet((parse_requirement("gpu"),))
        targets = {"gpu": target(), "other": target(name="other"), "cpu": target(NO_GPU, "cpu")}
        for names, expected in (
            (["gpu", "other"], ["gpu-1.0-cu128"] * 2),
            (["gpu", "cpu"], ["gpu-2.0-null"] * 2),
        ):
            with two.resolver(options=ALL) as resolver:
                found = resolver.resolve_all(wanted, [targets[name] for name in names])
            assert list(map(short, found)) == expected


class TestCosts:
    def fetched(self, world, on=None, **options):
        world.server.requests.clear()
        world.resolve("gpu", on=on, **options)
        return sum(path.endswith("-variants.json") for path in world.server.requests)

    def test_nothing_without_an_accelerator(self, two):
        two.add(cuda("gpu", "0.9", "12.6"))
        plain = self.fetched(two, on=target(NO_GPU))
        assert self.fetched(two, on=target(NO_GPU), options=ALL) == plain == 1

    def test_at_most_sixteen(self, world):
        for number in range(20):
            world.add(cuda("gpu", f"1.{number}", "13.0"))
        assert self.fetched(world, options=ALL) == 16
        assert "none of the 16 newest versions" in world.resolve("gpu", options=ALL).warnings[0]

    def test_backtracking(self, world):
        """Versions that are refused for their dependencies are not looked through again."""
        for number in range(12):
            world.add(cuda("gpu", f"1.{number}", "12.8", requires=(f"lib=={number}",)))
        world.add(Wheel("lib", "0"))
        assert self.fetched(world, options=ALL) == self.fetched(world)
