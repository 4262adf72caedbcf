"""Records what the universes resolve to, into `universes.json`: run it to record again.

What is recorded comes from the provider alone: of plain universes as they are, of variant universes
after the oracle took their variants apart. The wrapper has no part in it.
"""

import json
from pathlib import Path

import resolvelib
import universes

PATH = Path(__file__).with_name("universes.json")
PLAIN = 300
VARIANTS = 500


def entry(universe, outcome):
    return {
        "universe": universe.fingerprint(),
        "result": outcome.result,
        "rounds": outcome.rounds,
        "events": outcome.digest(universes.ASKED_BY_WRAPPER),
    }


def record():
    plain = map(universes.plain_universe, range(PLAIN))
    variants = map(universes.variant_universe, range(VARIANTS))
    return {
        "resolvelib": resolvelib.__version__,
        "plain": [entry(universe, universes.resolve_bare(universe)) for universe in plain],
        "variants": [
            entry(universe, universes.resolve_expanded(universe)) for universe in variants
        ],
    }


if __name__ == "__main__":
    recorded = record()
    lines = [
        f'"{kind}": [\n' + ",\n".join(map(json.dumps, recorded[kind])) + "\n]"
        for kind in ("plain", "variants")
    ]
    version = json.dumps(recorded["resolvelib"])
    PATH.write_text("{\n" + ",\n".join([f'"resolvelib": {version}', *lines]) + "\n}\n")
    solved = sum(1 for kind in ("plain", "variants") for item in recorded[kind] if item["result"])
    print(f"{PLAIN + VARIANTS} universes, {solved} with a result, into {PATH.name}")
