"""Reads a JSON list of cases, asks the provider about each, writes the answers as JSON.

A case holds environment variables: `process` for the (fake) driver, `overrides` for the provider,
None to let it look at the process's own. Runs in a process of its own because the driver library
can be loaded only once.
"""

import json
import logging
import os
import sys

from pep_variants.errors import ProviderError
from pep_variants.providers.nvidia import NvidiaProvider


class Messages(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def ask(process: dict[str, str], overrides: dict[str, str] | None) -> dict[str, object]:
    messages = Messages()
    logger = logging.getLogger("pep_variants")
    logger.addHandler(messages)
    before = dict(os.environ)
    os.environ.update(process)
    try:
        provider = NvidiaProvider() if overrides is None else NvidiaProvider(overrides)
        return {
            "supported": list(provider.supported().items()),
            "summary": provider.summary(),
            "warnings": messages.texts,
        }
    except ProviderError as error:
        return {"error": str(error)}
    finally:
        logger.removeHandler(messages)
        os.environ.clear()
        os.environ.update(before)


logging.lastResort = None
json.dump([ask(**case) for case in json.load(sys.stdin)], sys.stdout)
