"""Facts about Intel's GPUs through Level Zero, in as much of its API as that takes.

Structures and numbers are those of the Level Zero specification, core API 1.0 and its extension
``ZE_extension_device_ip_version``; `zeInitDrivers` came with 1.10, older loaders have `zeInit`.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable
from ctypes import byref, c_char, c_uint8, c_uint32, c_uint64, c_void_p

logger = logging.getLogger(__name__)

INTEL = 0x8086
"""PCI vendor of the GPUs that count; others may have a driver for Level Zero too."""

_MAX_COUNT = 256
"""More drivers, or devices of a driver, than there are: a larger answer is nonsense."""

_GPU_ONLY = 1
_TYPE_GPU = 1
_INIT_DRIVER_TYPE_DESC = 0x00020021
_DEVICE_PROPERTIES = 0x3
_DEVICE_IP_VERSION = 0x1000F


class _DriverTypes(ctypes.Structure):
    _fields_ = (("stype", c_uint32), ("next", c_void_p), ("flags", c_uint32))


class _IpVersion(ctypes.Structure):
    _fields_ = (("stype", c_uint32), ("next", c_void_p), ("version", c_uint32))


class _Properties(ctypes.Structure):
    _fields_ = (
        ("stype", c_uint32),
        ("next", c_void_p),
        ("type", c_uint32),
        ("vendor", c_uint32),
        ("device", c_uint32),
        ("flags", c_uint32),
        ("subdevice", c_uint32),
        ("clock", c_uint32),
        ("max_allocation", c_uint64),
        ("max_contexts", c_uint32),
        ("max_priority", c_uint32),
        ("threads_per_eu", c_uint32),
        ("simd_width", c_uint32),
        ("eus_per_subslice", c_uint32),
        ("subslices_per_slice", c_uint32),
        ("slices", c_uint32),
        ("timer_resolution", c_uint64),
        ("timestamp_bits", c_uint32),
        ("kernel_timestamp_bits", c_uint32),
        ("uuid", c_uint8 * 16),
        ("name", c_char * 256),
    )


def gpu_ip_versions(library: ctypes.CDLL) -> list[int]:
    """Return the encoded IP version of every Intel GPU, in the order of the drivers.

    What fails or answers nonsense is left out: a driver, or a device.

    Args:
        library: the loader of Level Zero.
    """
    versions: list[int] = []
    try:
        for driver in _drivers(library):
            for device in _handles(lambda *out, of=driver: library.zeDeviceGet(c_void_p(of), *out)):
                version = _IpVersion(_DEVICE_IP_VERSION)
                properties = _Properties(_DEVICE_PROPERTIES, ctypes.addressof(version))
                status = library.zeDeviceGetProperties(c_void_p(device), byref(properties))
                if status or properties.vendor != INTEL or properties.type != _TYPE_GPU:
                    logger.debug("ignoring a Level Zero device (error %#x)", status & 0xFFFFFFFF)
                elif version.version:
                    versions.append(version.version)
    except AttributeError as error:  # a function is missing
        logger.debug("the Level Zero loader is not usable: %s", error)
    return versions


def _drivers(library: ctypes.CDLL) -> list[int]:
    # A driver older than the loader may know the older function only.
    if hasattr(library, "zeInitDrivers"):
        types = _DriverTypes(_INIT_DRIVER_TYPE_DESC, None, _GPU_ONLY)
        if drivers := _handles(lambda *out: library.zeInitDrivers(*out, byref(types))):
            return drivers
    if status := library.zeInit(c_uint32(_GPU_ONLY)):
        logger.debug("Level Zero cannot be initialized: error %#x", status & 0xFFFFFFFF)
        return []
    return _handles(library.zeDriverGet)


def _handles(enumerate_into: Callable[..., int]) -> list[int]:
    """Return all handles of a function that takes a count and an array, either may be asked for."""
    count = c_uint32(0)
    if enumerate_into(byref(count), None) or not 0 < count.value <= _MAX_COUNT:
        return []
    handles = (c_void_p * count.value)()
    if enumerate_into(byref(count), handles):
        return []
    return [handle for handle in handles[: count.value] if handle]
