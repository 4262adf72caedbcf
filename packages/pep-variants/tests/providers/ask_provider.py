"""Reads a JSON list of cases, asks a provider about each, writes the answers as JSON.

The provider is the one argument, `module:class`. A case holds environment variables: `process` for
the (fake) driver, `overrides` for the provider, None to let it look at the process's own; and
optionally `root`, `system` and `time_limit` for the provider. Runs in a process of its own because
a driver library can be loaded only once.
"""

import ctypes.util  # noqa: F401 - before the tests pretend to be on another system
import importlib
import json
import os
import sys
from pathlib import Path

from pep_variants._providers.base import recorded

sys.path.insert(0, str(Path(__file__).parents[1]))

from summaries import summary


def ask(factory, process, overrides, root="/", **rest) -> dict[str, object]:
    before, system = dict(os.environ), sys.platform
    os.environ.update(process)
    sys.platform = rest.get("system", system)
    try:
        with recorded() as trail:
            environ = os.environ if overrides is None else overrides
            provider = factory(environ, Path(root), **rest)
            return {
                "supported": list(provider.supported().items()),
                "summary": summary(provider),
                "facts": provider.facts(),
                "warnings": trail.warnings,
            }
    finally:
        os.environ.clear()
        os.environ.update(before)
        sys.platform = system


module, _, name = sys.argv[1].partition(":")
provider_class = getattr(importlib.import_module(module), name)
json.dump([ask(provider_class, **case) for case in json.load(sys.stdin)], sys.stdout)
