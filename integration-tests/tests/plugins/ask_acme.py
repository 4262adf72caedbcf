"""Asks acme-variant-provider and prints the answer; run as a script by the tests.

Arguments: cache directory, directory of wheels, allowed requirements.
"""

import json
import os
import sys
from pathlib import Path

from pep_variants.errors import ProviderError
from pep_variants.model.metadata import ProviderInfo
from variants_plugins import PluginRunner, Sources

cache, wheels, *allow = sys.argv[1:]
runner = PluginRunner(
    allow or ["acme-variant-provider"],
    Sources(find_links=(wheels,), no_index=True),
    cache_dir=Path(cache),
    # In the sandbox it could not write its log.
    sandbox="off" if "ACME_VARIANT_PROVIDER_LOG" in os.environ else "auto",
)
try:
    answer = runner.ask("acme", ProviderInfo(("acme-variant-provider",)), {})
except ProviderError as error:
    print(error)
    sys.exit(3)
print(json.dumps({"features": answer.features, "resolved": answer.resolved}))
