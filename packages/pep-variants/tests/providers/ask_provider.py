"""Reads a JSON list of cases, asks a provider about each, writes the answers as JSON.

The provider is the one argument, `module:class`. A case holds environment variables: `process` for
the (fake) driver, `overrides` for the provider, None to let it look at the process's own; and
optionally `root`, `system` and `time_limit` for the provider. Runs in a process of its own because
a driver library can be loaded only once.
"""

import ctypes.util  # noqa: F401 - before the tests pretend to be on another system
import importlib
import json
import logging
import os
import sys
import time
from pathlib import Path

from pep_variants.errors import ProviderError

sys.path.insert(0, str(Path(__file__).parents[1]))

from summaries import summary


class Messages(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def ask(factory, process, overrides, root="/", **rest) -> dict[str, object]:
    messages = Messages()
    logger = logging.getLogger("pep_variants")
    logger.addHandler(messages)
    before, system = dict(os.environ), sys.platform
    os.environ.update(process)
    sys.platform = rest.get("system", system)
    try:
        started = time.monotonic()
        environ = os.environ if overrides is None else overrides
        provider = factory(environ, Path(root), **rest)
        return {
            "supported": list(provider.supported().items()),
            "summary": summary(provider),
            "facts": provider.facts(),
            "warnings": messages.texts,
            "seconds": time.monotonic() - started,
        }
    except ProviderError as error:
        return {"error": str(error)}
    finally:
        logger.removeHandler(messages)
        os.environ.clear()
        os.environ.update(before)
        sys.platform = system


logging.lastResort = None
module, _, name = sys.argv[1].partition(":")
provider_class = getattr(importlib.import_module(module), name)
json.dump([ask(provider_class, **case) for case in json.load(sys.stdin)], sys.stdout)
