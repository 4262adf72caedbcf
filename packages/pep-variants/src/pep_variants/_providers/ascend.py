"""The ``ascend`` namespace: type of the NPUs, versions of their driver and of CANN.

As the package ascend-variant-provider 0.0.2 has it: ``npu-smi info`` tells types and driver, a
file below ``ASCEND_TOOLKIT_HOME`` tells the version of CANN, which counts only where the former
finds an NPU. That package is on PyPI; it lists the type once for each NPU, here it is once.
"""

from __future__ import annotations

import itertools
import logging
import platform
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

from .._model.platform import Fact
from .._model.property import VALUE, Features
from .base import (
    COMMAND_SECONDS,
    CommandFailed,
    DriverProvider,
    FactWord,
    Vendor,
    command_folders,
    command_output,
    find_command,
    matching,
)

logger = logging.getLogger(__name__)

NPU_TYPE = "npu_type"
DRIVER_VERSION = "driver_version"
CANN_VERSION = "cann_version"

_TITLES = {NPU_TYPE: "NPU", DRIVER_VERSION: "Ascend driver", CANN_VERSION: "CANN"}
_EXAMPLES = {NPU_TYPE: "910b", DRIVER_VERSION: "24.1.rc1", CANN_VERSION: "8.0.rc1"}
_KNOWN_TYPES = ("310b", "310p", "910a", "910b", "910c", "910prob")

_NPU = r"(?m)^\|\s*(?P<number>[0-9]+)\s+(?P<type>[0-9]+[A-Za-z]+)[0-9]*\s+\|"
_VERSION = r"(?P<major>[0-9]+)\.(?P<minor>[0-9]+)(?:\.(?P<patch>[0-9]+))?"
_DRIVER = rf"Version:\s*{_VERSION}(?:\.rc(?P<rc>[0-9]+))?"
_CANN = rf"version={_VERSION}(?:\.RC(?P<rc>[0-9]+))?"


class AscendProvider(DriverProvider):
    """Which NPU code runs here.

    ``npu_type``: the series of each NPU without its number, e.g. ``910b`` for a 910B3, in the
    order of ``npu-smi``. ``driver_version`` and ``cann_version``: exactly the installed ones,
    e.g. ``24.1.rc1`` and ``8.0.rc1``. Without an NPU whose type ``npu-smi`` tells there is none
    of them.

    The variable that `override` gives for a feature replaces its detection.
    """

    namespace = "ascend"
    default_time_limit = COMMAND_SECONDS

    @staticmethod
    def override(feature: str) -> str:
        """Return the variable that replaces the detection of *feature*."""
        return f"ASCEND_VARIANT_PROVIDER_FORCE_{feature.upper()}"

    def supported(self) -> Features:
        """Return the type of the NPUs and the versions.

        Raises:
            ProviderError: an override is not a valid value.
        """
        return {
            feature: tuple(dict.fromkeys(fact.value for fact in facts))
            for feature, facts in self._facts.items()
            if facts
        }

    def known(self) -> Features:
        """Return the types that exist, and versions that exist or may come."""
        return {
            NPU_TYPE: _KNOWN_TYPES,
            DRIVER_VERSION: tuple(_versions(range(30, 19, -1))),
            CANN_VERSION: tuple(_versions(range(12, 4, -1))),
        }

    def facts(self) -> tuple[Fact, ...]:
        """Return every NPU and the versions.

        Raises:
            ProviderError: an override is not a valid value.
        """
        return tuple(fact for facts in self._facts.values() for fact in facts)

    @cached_property
    def _facts(self) -> Mapping[str, list[Fact]]:
        facts = {feature: self._forced(feature) for feature in _TITLES}
        if not all(facts.values()):
            for feature, found in self._detected().items():
                facts[feature] = facts[feature] or found
        return facts

    def _forced(self, feature: str) -> list[Fact]:
        variable = self.override(feature)
        forced = self.overridden(
            variable, VALUE.pattern, "is not a valid feature value", _EXAMPLES[feature]
        )
        return [Fact(_TITLES[feature], text, variable, True) for text in forced]

    def _detected(self) -> dict[str, list[Fact]]:
        if self.system != "linux":
            return {}
        path = find_command("npu-smi", command_folders(self.environ))
        if path is None:
            return {}
        try:
            output = command_output(path, "info", environ=self.environ, time_limit=self.time_limit)
        except CommandFailed as error:
            logger.warning(
                "Ascend NPUs cannot be detected: %s. Set %s to list them.",
                error,
                self.override(NPU_TYPE),
            )
            return {}
        source = f"{path} info"
        npus = [
            Fact(_TITLES[NPU_TYPE], match["type"].lower(), f"{source}, NPU {match['number']}")
            for match in re.finditer(_NPU, output)
        ]
        if not npus:
            logger.debug("%s lists no NPU", source)
            return {}
        driver = [
            Fact(_TITLES[DRIVER_VERSION], _version(match), source)
            for match in itertools.islice(re.finditer(_DRIVER, output), 1)
        ]
        return {NPU_TYPE: npus, DRIVER_VERSION: driver, CANN_VERSION: list(self._cann())}

    def _cann(self) -> Iterator[Fact]:
        home = self.environ.get("ASCEND_TOOLKIT_HOME")
        if not home:
            return
        path = Path(home, f"{platform.machine()}-linux", "ascend_toolkit_install.info")
        try:
            match = re.search(_CANN, path.read_text(errors="replace"))
        except OSError as error:
            logger.debug("the version of CANN is not known: %s", error)
            return
        if match:
            yield Fact(_TITLES[CANN_VERSION], _version(match), str(path))


def _version(match: re.Match[str]) -> str:
    """Return the version with all numbers normalized; alpha and beta stages do not show."""
    text = f"{int(match['major'])}.{int(match['minor'])}"
    if match["patch"] is not None:
        text += f".{int(match['patch'])}"
    return text if match["rc"] is None else f"{text}.rc{int(match['rc'])}"


def _versions(majors: range) -> Iterator[str]:
    for major in majors:
        for minor in range(9, -1, -1):
            yield from (f"{major}.{minor}.{patch}" for patch in range(9, -1, -1))
            yield f"{major}.{minor}"
            yield from (f"{major}.{minor}.rc{number}" for number in range(9, 0, -1))


def _word(feature: str, title: str, what: str, *, several: bool = False) -> FactWord:
    example = _EXAMPLES[feature]
    read = matching(VALUE.pattern, what, example)
    return FactWord(AscendProvider.override(feature), title, example, read, several)


VENDOR = Vendor(
    provider=AscendProvider,
    title="Ascend",
    device="Ascend NPU",
    absent="no Ascend NPU",
    features={},
    facts={
        "npu": _word(NPU_TYPE, "Ascend NPU: 910b", "the type of an Ascend NPU", several=True),
        "ascend": _word(
            DRIVER_VERSION, "version of the Ascend driver", "a version of the Ascend driver"
        ),
        "cann": _word(CANN_VERSION, "version of CANN", "a version of CANN"),
    },
    hidden_by=("ASCEND_RT_VISIBLE_DEVICES",),
    variables=(
        "ASCEND_DRIVER_PATH",
        "ASCEND_HOME_PATH",
        "ASCEND_OPP_PATH",
        "ASCEND_TOOLKIT_HOME",
    ),
    nodes=("davinci*",),
    versions=("usr/local/Ascend/driver/version.info",),
)
