"""Asks acme-variant-provider and prints the answer; run as a script by the tests.

Arguments: cache directory, directory of wheels, allowed requirements. With ``-`` for the directory
the URL of an index comes from standard input.
"""

import json
import os
import sys
from pathlib import Path

from pep_variants._model.metadata import ProviderInfo
from pep_variants.errors import ProviderError
from pep_variants.preferences import Sources
from variants_plugins.runner import PluginRunner

cache, wheels, *allow = sys.argv[1:]
runner = PluginRunner(
    allow or ["acme-variant-provider"],
    Sources(sys.stdin.read()) if wheels == "-" else Sources(find_links=(wheels,), no_index=True),
    cache_dir=Path(cache),
    # In the sandbox it could not write its log.
    sandbox="off" if "ACME_VARIANT_PROVIDER_LOG" in os.environ else "auto",
    time_limit=float(os.environ.get("TIME_LIMIT", "30")),
)
try:
    answer = runner.ask("acme", ProviderInfo(("acme-variant-provider",)), {})
except ProviderError as error:
    print(error)
    sys.exit(3)
print(json.dumps({"features": answer.features, "resolved": answer.resolved}))
