"""The ``intel`` namespace: IP versions of the GPUs.

The values are those of the package intel-variant-provider 0.0.3. Level Zero is asked through its
loader library, but only where the kernel has an Intel GPU: loading the drivers takes a while.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from .._model.platform import Fact
from .._model.property import Features
from .._timeouts import within
from ..errors import listed
from .base import (
    LIBRARY_SECONDS,
    DriverProvider,
    FactWord,
    FeatureWords,
    Vendor,
    load,
    numbers,
    tried,
)
from .level_zero import gpu_ip_versions

logger = logging.getLogger(__name__)

DEVICE_OVERRIDE = "INTEL_VARIANT_PROVIDER_FORCE_DEVICE_IP"

DEVICE_IP = "device_ip"


class Device(NamedTuple):
    """A GPU that is known.

    Attributes:
        ip: its version, ``architecture.release.revision``.
        names: what Intel's offline compiler calls it.
        base: version of the device whose code it runs as well, empty if there is none.
    """

    ip: str
    names: str
    base: str = ""


KNOWN_DEVICES = (
    Device("35.11.0", "cri"),
    Device("35.10.4", "nvl-p"),
    Device("30.5.4", "nvl-u, nvl-h", "30.0.4"),
    Device("30.4.4", "nvl-s, nvl-hx, nvl-ul", "30.0.4"),
    Device("30.3.1", "wcl", "30.0.4"),
    Device("30.1.0", "ptl-u", "30.0.4"),
    Device("30.0.4", "ptl-h"),
    Device("20.4.4", "lnl-m", "20.1.0"),
    Device("20.2.0", "bmg-g31", "20.1.0"),
    Device("20.1.0", "bmg-g21"),
    Device("12.74.4", "arl-h"),
    Device("12.71.4", "mtl-h", "12.70.4"),
    Device("12.70.4", "mtl-u, arl-u, arl-s"),
    Device("12.60.7", "pvc"),
    Device("12.57.0", "acm-g12, dg2-g12", "12.55.8"),
    Device("12.56.5", "acm-g11, dg2-g11, ats-m75", "12.55.8"),
    Device("12.55.8", "acm-g10, dg2-g10, ats-m150"),
    Device("12.10.0", "dg1"),
    Device("12.4.0", "adl-n"),
    Device("12.3.0", "adl-p, rpl-p"),
    Device("12.2.0", "adl-s, rpl-s"),
    Device("12.1.0", "rkl"),
    Device("12.0.0", "tgllp, tgl"),
)
"""Every device that intel-variant-provider knows, newest first."""

BY_IP = {device.ip: device for device in KNOWN_DEVICES}
"""The same by IP version."""


def titled(ip: str) -> str:
    """Return the IP version *ip* with the names of that device, e.g. ``20.1.0 (bmg-g21)``."""
    device = BY_IP.get(ip)
    return f"{ip} ({device.names})" if device else ip


class IntelProvider(DriverProvider):
    """Which GPU code runs here.

    ``device_ip``: for every known GPU, in the order of the drivers, its IP version and then that
    of the device whose code it runs as well. GPUs that intel-variant-provider does not know
    support nothing.

    `DEVICE_OVERRIDE` (``20.1.0``, several separated by commas, spaces or semicolons) replaces the
    detection of the GPUs. What else runs on them is supported too, as it would be if they were
    there; intel-variant-provider leaves that out.
    """

    namespace = "intel"
    default_time_limit = LIBRARY_SECONDS

    def supported(self) -> Features:
        """Return the IP versions whose code runs here.

        Raises:
            ProviderError: the override is not a list of IP versions.
        """
        versions: dict[str, None] = {}
        for fact in self.facts():
            ip = fact.value.partition(" ")[0]
            if ip in BY_IP:
                versions[ip] = None
                if base := BY_IP[ip].base:
                    versions[base] = None
        return {DEVICE_IP: tuple(versions)} if versions else {}

    def known(self) -> Features:
        """Return the IP versions of all known devices, newest first."""
        return {DEVICE_IP: tuple(device.ip for device in KNOWN_DEVICES)}

    def facts(self) -> tuple[Fact, ...]:
        """Return every GPU, known or not.

        Raises:
            ProviderError: the override is not a list of IP versions.
        """
        return self._facts

    @cached_property
    def _facts(self) -> tuple[Fact, ...]:
        number = r"(?:0|[1-9][0-9]{0,2})"
        forced = self.overridden(
            DEVICE_OVERRIDE,
            rf"(?:0|[1-9][0-9]{{0,3}})\.{number}\.{number}",
            "is not a list of device IP versions",
            "20.1.0",
            several=True,
        )
        if forced:
            for ip in forced:
                if ip not in BY_IP:
                    logger.warning(
                        "Device IP %s in %s is not known: no variant is built for it.",
                        ip,
                        DEVICE_OVERRIDE,
                    )
            return tuple(Fact("Intel GPU", titled(ip), DEVICE_OVERRIDE, True) for ip in forced)
        return tuple(
            Fact("Intel GPU", titled(ip), f"{self._library_name}, GPU {index}")
            for index, ip in enumerate(self._detected() if self._has_gpu() else ())
        )

    @property
    def _library_name(self) -> str:
        return "ze_loader.dll" if self.system == "win32" else "libze_loader.so.1"

    def _has_gpu(self) -> bool:
        """Return whether the kernel may have an Intel GPU."""
        if self.system != "linux":
            return self.system == "win32"
        if (self.root / "dev/dxg").exists():  # WSL
            tried(str(self.root / "dev/dxg"), "exists", found=True)
            return True
        folder = self.root / "dev/dri"
        try:
            nodes = [node.name for node in folder.iterdir() if node.name.startswith("renderD")]
        except OSError as error:
            tried(str(folder), f"cannot be read: {error.strerror}")
            return False
        has_node = any(self._vendor(node) in ("0x8086", "") for node in nodes)
        answer = "has a render node" if has_node else "has no render node of an Intel GPU"
        tried(str(folder), answer, found=has_node)
        return has_node

    def _vendor(self, node: str) -> str:
        """Return the PCI vendor of a render node, empty if the kernel does not tell."""
        try:
            return (self.root / "sys/class/drm" / node / "device/vendor").read_text().strip()
        except OSError:
            return ""

    def _detected(self) -> Iterable[str]:
        """Return the IP versions of the GPUs that Level Zero finds."""
        try:
            versions = within(self.time_limit, self._ask)
        except TimeoutError as error:
            logger.warning(
                "Intel GPUs cannot be detected: the driver does not respond (%s). Set %s to list "
                "them.",
                error,
                DEVICE_OVERRIDE,
            )
            return
        for version in versions:
            ip = f"{version >> 22}.{version >> 14 & 0xFF}.{version & 0x3F}"
            if ip not in BY_IP:
                logger.info("The Intel GPU with device IP %s is not known.", ip)
            yield ip

    def _ask(self) -> list[int]:
        name: str | Path = self._library_name
        if self.system == "win32":
            name = Path(self.environ.get("WINDIR", "C:/Windows"), "System32", name)
        library = load([os.fspath(name)])
        if library is None:
            return []
        return gpu_ip_versions(library)


def _device(text: str) -> str:
    """Return the IP version of the Intel GPU *text*: that version, or a name of Intel's."""
    if text in BY_IP:
        return text
    for device in KNOWN_DEVICES:
        if text in device.names.split(", "):
            return device.ip
    names = [name for device in KNOWN_DEVICES for name in device.names.split(", ")]
    close = get_close_matches(text[:80], [*names, *BY_IP], 3)
    raise ValueError(
        "is not an Intel GPU: write its IP version, such as 20.1.0, or Intel's name"
        + (f", such as {listed(close)}" if close else "")
    )


VENDOR = Vendor(
    provider=IntelProvider,
    title="Intel",
    device="Intel GPU",
    absent="no Intel GPU with Level Zero",
    features={
        DEVICE_IP: FeatureWords(
            "Intel GPU",
            fits=lambda value: f"Intel GPU {titled(value)}",
            needs=lambda values: f"built for Intel GPU {listed(sorted(values, key=numbers))}",
            answer=titled,
            has=lambda values: f"this machine has {listed(list(map(titled, values)), 'and')}",
        )
    },
    facts={
        "intel": FactWord(
            DEVICE_OVERRIDE, "Intel GPU: 20.1.0, bmg-g21", "bmg-g21", _device, several=True
        )
    },
    counted="Intel GPU",
    hidden_by=("ZE_AFFINITY_MASK", "ONEAPI_DEVICE_SELECTOR"),
    variables=(
        "ONEAPI_ROOT",
        "SYCL_DEVICE_FILTER",
        "ZE_ENABLE_PCI_ID_DEVICE_ORDER",
        "ZE_FLAT_DEVICE_HIERARCHY",
    ),
    nodes=("dri/renderD*",),
    libraries=("Windows/System32/ze_loader.dll",),
)
