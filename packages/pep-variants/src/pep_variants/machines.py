"""Machines: detection of what one supports, known and described ones, platform files."""

from ._detect.detector import PROVIDER_ID_LENGTH, Answer, Detector, Refused, provider_id
from ._detect.known_gpus import KNOWN_DRIVERS, KNOWN_GPUS, SEEN_BY, KnownDriver, KnownGpu
from ._detect.known_machines import BY_NAME, KNOWN_MACHINES, KnownMachine, names_file
from ._detect.machines import CPU, WORDS, gpus, load_machine, machine_text, parse_facts
from ._formats.platform_file import load_platform, read_platform, write_platform
from ._model.environment import LEGACY, LINUX, MACOS, modern_tag, system_markers, target_environment
from ._model.platform import Platform, Support
from ._providers.base import DriverProvider, Vendor, recorded
from ._providers.process import NOISE_BYTES, run
from ._providers.registry import (
    ACCELERATORS,
    BUILTIN_NAMESPACES,
    KNOWN,
    Examined,
    KnownProvider,
    examine_host,
    find_known,
)
from ._providers.surroundings import Surroundings, why_invisible
from ._settings.allow_list import Allowed, AllowList, Wanted

__all__ = [
    "ACCELERATORS", "BUILTIN_NAMESPACES", "BY_NAME", "CPU", "KNOWN", "KNOWN_DRIVERS", "KNOWN_GPUS",
    "KNOWN_MACHINES", "LEGACY", "LINUX", "MACOS", "NOISE_BYTES", "PROVIDER_ID_LENGTH", "SEEN_BY",
    "WORDS", "AllowList", "Allowed", "Answer", "Detector", "DriverProvider", "Examined",
    "KnownDriver", "KnownGpu", "KnownMachine", "KnownProvider", "Platform", "Refused", "Support",
    "Surroundings", "Vendor", "Wanted", "examine_host", "find_known", "gpus", "load_machine",
    "load_platform", "machine_text", "modern_tag", "names_file", "parse_facts", "provider_id",
    "read_platform", "recorded", "run", "system_markers", "target_environment", "why_invisible",
    "write_platform",
]  # fmt: skip
