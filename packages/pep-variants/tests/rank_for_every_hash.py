"""Prints everything the engine decides about random releases: for `test_ranking`."""

import random

from worlds import FEATURES, NAMESPACES, VALUES

from pep_variants.choose.explanation import verdicts
from pep_variants.choose.preferences import preferences_from_options
from pep_variants.choose.ranking import rank
from pep_variants.formats.merging import merge_all
from pep_variants.formats.platform_file import write_platform
from pep_variants.formats.writer import write_metadata
from pep_variants.model.metadata import Metadata, ProviderInfo
from pep_variants.model.platform import Platform, Support

chance = random.Random(825)


def features():
    return {
        name: tuple(sorted(set(chance.choices(VALUES, k=2))))
        for name in chance.sample(FEATURES, chance.randint(1, 3))
    }


for _ in range(20):
    wheels = [
        Metadata(
            NAMESPACES,
            {f"v{number}": {name: features() for name in chance.sample(NAMESPACES, 2)}},
            {"alpha": ProviderInfo(static={"one": ("1",), "two": ("2",)})},
            source=f"{number}.whl",
        )
        for number in range(12)
    ]
    metadata = merge_all(wheels)
    platform = Platform({name: Support(features()) for name in chance.sample(NAMESPACES, 2)})
    preferences = preferences_from_options(
        {"variant-prefer": ["beta", "alpha :: two"], "variant-exclude": ["gamma_2 :: one :: 1"]}
    )
    ranking = rank(metadata, platform, preferences)
    print(ranking.labels, ranking.ranked, ranking.rejected, sep="\n")
    print(*verdicts(ranking, None), sep="\n")
    print(write_platform(platform, "test"))
    print(metadata.used_values("alpha"), preferences)
    try:
        print(write_metadata(metadata))
    except Exception as error:
        print(error)
