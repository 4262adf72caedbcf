"""The ``tpu`` namespace: whether the machine has a TPU of Google.

The values are those that uv 0.13.8 gives for the package tpu-variant-provider 0.1.0, of which no
release is public. Only the kernel's list of PCI devices is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from .._model.platform import Fact
from .._model.property import Features
from .base import DriverProvider, FactWord, FeatureWords, Vendor, matching, tried

PRESENT_OVERRIDE = "TPU_VARIANT_PROVIDER_FORCE_PRESENT"

PRESENT = "present"

_TRUE, _FALSE = ("1", "true", "yes", "y", "t"), ("0", "false", "no", "n", "f")
_OVERRIDE = rf"(?i:{'|'.join((*_TRUE, *_FALSE))})"
_GOOGLE = "0x1ae0"
_DEVICES = {
    *("0x0027", "0x0056", "0x005e", "0x0062", "0x0063", "0x006f", "0x0076", "0x007c", "0x0083")
}
_PCI = "sys/bus/pci/devices"


class TpuProvider(DriverProvider):
    """``present``: ``true`` where the kernel lists a TPU, on Linux.

    `PRESENT_OVERRIDE` (``true`` or ``false``) replaces the detection.
    """

    namespace = "tpu"
    default_time_limit = 0.0

    def supported(self) -> Features:
        """Return whether there is a TPU.

        Raises:
            ProviderError: the override is neither true nor false.
        """
        return {PRESENT: ("true",)} if self._facts else {}

    def known(self) -> Features:
        """Return the one value."""
        return {PRESENT: ("true",)}

    def facts(self) -> tuple[Fact, ...]:
        """Return every TPU.

        Raises:
            ProviderError: the override is neither true nor false.
        """
        return self._facts

    @cached_property
    def _facts(self) -> tuple[Fact, ...]:
        forced = self.overridden(PRESENT_OVERRIDE, _OVERRIDE, "is not true or false", "true")
        if forced:
            is_present = forced[0].lower() in _TRUE
            return (Fact("TPU", "present", PRESENT_OVERRIDE, True),) if is_present else ()
        return tuple(self._detected()) if self.system == "linux" else ()

    def _detected(self) -> Iterator[Fact]:
        folder = self.root / _PCI
        try:
            devices = sorted(folder.iterdir())
        except OSError as error:
            tried(str(folder), f"cannot be read: {error.strerror}")
            return
        tpus = 0
        for device in devices:
            try:
                if (device / "vendor").read_text().strip() != _GOOGLE:
                    continue
                model = (device / "device").read_text().strip()
            except (OSError, ValueError):
                continue
            if model in _DEVICES:
                tpus += 1
                yield Fact("TPU", model, str(device))
        answer = f"lists {tpus} TPU{'s' * (tpus > 1)}" if tpus else "lists no TPU"
        tried(str(folder), answer, found=bool(tpus))


VENDOR = Vendor(
    provider=TpuProvider,
    title="Google",
    device="TPU",
    absent="no TPU",
    features={
        PRESENT: FeatureWords("TPU", fits=lambda _: "TPU", needs=lambda _: "needs a TPU"),
    },
    facts={
        "tpu": FactWord(
            PRESENT_OVERRIDE, "TPU: true", "true", matching("true", "the word true", "true")
        )
    },
    counted="TPU",
    hidden_by=("TPU_VISIBLE_DEVICES",),
    nodes=("accel*", "accel/*", "vfio/*"),
)
