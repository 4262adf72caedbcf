"""The Intel GPUs that intel-variant-provider 0.0.3 knows, and their names."""

from __future__ import annotations

from typing import NamedTuple


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
