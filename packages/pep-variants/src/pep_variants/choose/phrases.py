"""Properties, and why they are not met, as phrases.

Well-known features have specific phrases, all others a general one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..model.intel_gpus import titled
from ..model.property import ABI_DEPENDENCY, Properties
from ..patterns import pattern
from .ranking import Reason

_SM = pattern(r"(\d+)(\d[a-z]?)_(real|virtual)")
_MAX_VALUES = 4
_CPUS = ("x86_64", "aarch64")

_PUBLISHER_ORDER = ("priority", "order")
"""What PyTorch's metadata calls the order of builds that a machine supports equally."""

NOTHING = "; nothing of {} is supported here"


MORE = " (-v shows every variant, --variant {}=LABEL takes another one)"
"""How to see and take other variants of a project; for the first line that misses a better one."""


def why_chosen(supported: Properties) -> str:
    """Return in a few words what makes a variant with these supported properties fit.

    Empty for the null variant. The publisher's order of builds is not a demand, and is left out.
    """
    return ", ".join(
        f"built against {feature} {listed(values)}"
        if namespace == ABI_DEPENDENCY  # all of them do, which one counts the resolution says
        else _fits(namespace, feature, values[0])
        for namespace, features in supported.items()
        for feature, values in features.items()
        if (namespace, feature) != _PUBLISHER_ORDER
    )


def why_rejected(reason: Reason) -> str:
    """Return *reason* as a phrase such as ``needs x86-64-v4, this CPU has x86-64-v3``."""
    needed = needs(reason)
    if reason.excluded is not None:
        return needed
    if not reason.supported:
        if _is_extension(reason):
            return f"{needed}, which this CPU does not have"
        lacks = _LACKS.get((reason.namespace, reason.feature))
        return f"{needed}, {lacks}" if lacks else needed + NOTHING.format("it")
    has = _HAS.get((reason.namespace, reason.feature))
    found = has(reason.supported) if has else f"this machine has {listed(reason.supported, 'and')}"
    return f"{needed}, {found}"


def _fits(namespace: str, feature: str, value: str) -> str:
    if _is_flag(namespace, (value,)):
        return feature
    phrase = _FITS.get((namespace, feature))
    return phrase(value) if phrase else f"{namespace} {feature} {value}"


def asked(namespace: str, feature: str) -> str:
    """Return a feature as a heading, to which `answered` gives an answer."""
    if (namespace, feature) in _ASKED:
        return _ASKED[namespace, feature]
    if namespace in _CPUS:
        return f"CPU extension {feature}"
    return f"{namespace} :: {feature}"


def answered(namespace: str, feature: str, value: str) -> str:
    """Return *value* as an answer to `asked`: ``CUDA driver``: ``13.0 or newer``."""
    phrase = _ANSWERED.get((namespace, feature))
    if phrase is not None:
        return phrase(value)
    return "yes" if value == "on" else value


def needs(reason: Reason) -> str:
    """Return what a rejected variant needs, without what the platform has."""
    if reason.excluded is not None:
        return f"excluded by your preference {str(reason.excluded)!r}"
    if _is_extension(reason):
        return f"needs the CPU extension {reason.feature}"
    phrase = _NEEDS.get((reason.namespace, reason.feature))
    if phrase:
        return phrase(reason.wanted)
    if reason.namespace == ABI_DEPENDENCY:
        return f"is built against {reason.feature} {listed(reason.wanted)}"
    return f"needs {reason.namespace} :: {reason.feature} {listed(reason.wanted)}"


def _is_extension(reason: Reason) -> bool:
    return _is_flag(reason.namespace, reason.wanted)


def _is_flag(namespace: str, values: tuple[str, ...]) -> bool:
    """Return whether *values* are that of a feature which is there or not, of a CPU."""
    return values == ("on",) and namespace in _CPUS


def listed(values: Sequence[str], word: str = "or") -> str:
    """Return *values* as a list in words, a long one cut short."""
    shown = list(values[:_MAX_VALUES])
    if len(values) > _MAX_VALUES:
        return f"{', '.join(shown)}, … ({len(values)} values)"
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} {word} {shown[-1]}"


def _numbers(value: str) -> tuple[int, ...]:
    return tuple(int(part) for part in value.split(".") if part.isdigit() and len(part) < 6)


def _capability(value: str) -> str:
    match = _SM.fullmatch(value)
    return f"{match[1]}.{match[2]}" if match else value


def _capabilities(values: Sequence[str]) -> str:
    found = sorted({_capability(value) for value in values}, key=_numbers)
    return listed(found)


def _level(value: str) -> str:
    return f"x86-64-{value}"


_ASKED: dict[tuple[str, str], str] = {
    ("nvidia", "cuda_version_lower_bound"): "CUDA driver",
    ("nvidia", "cuda_version_upper_bound"): "CUDA driver",
    ("nvidia", "sm_arch"): "Compute capability",
    ("amd", "gfx_arch"): "AMD GPU",
    ("amd", "rocm_version"): "ROCm",
    ("intel", "device_ip"): "Intel GPU",
    ("x86_64", "level"): "x86-64 CPU",
    ("aarch64", "version"): "ARM CPU",
}

_ANSWERED: dict[tuple[str, str], Callable[[str], str]] = {
    ("nvidia", "cuda_version_lower_bound"): lambda value: f"{value} or newer",
    ("nvidia", "cuda_version_upper_bound"): lambda value: f"older than {value}",
    ("nvidia", "sm_arch"): lambda value: _capability(value),
    ("intel", "device_ip"): lambda value: titled(value),
    ("x86_64", "level"): _level,
    ("aarch64", "version"): lambda value: f"ARMv{value}",
}

_FITS: dict[tuple[str, str], Callable[[str], str]] = {
    ("nvidia", "cuda_version_lower_bound"): lambda value: f"CUDA driver {value} or newer",
    ("nvidia", "cuda_version_upper_bound"): lambda value: f"CUDA driver older than {value}",
    ("nvidia", "sm_arch"): lambda value: f"compute capability {_capability(value)}",
    ("amd", "gfx_arch"): lambda value: f"GPU {value}",
    ("amd", "rocm_version"): lambda value: f"ROCm {value}",
    ("intel", "device_ip"): lambda value: f"Intel GPU {titled(value)}",
    ("x86_64", "level"): _level,
    ("aarch64", "version"): lambda value: f"ARMv{value}",
}

_NEEDS: dict[tuple[str, str], Callable[[Sequence[str]], str]] = {
    ("nvidia", "cuda_version_lower_bound"): lambda values: (
        f"needs CUDA driver {min(values, key=_numbers)} or newer"
    ),
    ("nvidia", "cuda_version_upper_bound"): lambda values: (
        f"needs CUDA driver older than {max(values, key=_numbers)}"
    ),
    ("nvidia", "sm_arch"): lambda values: f"built for compute capability {_capabilities(values)}",
    ("amd", "gfx_arch"): lambda values: f"built for GPU {listed(values)}",
    ("amd", "rocm_version"): lambda values: f"needs ROCm {listed(sorted(values, key=_numbers))}",
    ("intel", "device_ip"): lambda values: (
        f"built for Intel GPU {listed(sorted(values, key=_numbers))}"
    ),
    ("x86_64", "level"): lambda values: f"needs {_level(min(values))}",
    ("aarch64", "version"): lambda values: f"needs ARMv{min(values, key=_numbers)}",
}

_HAS: dict[tuple[str, str], Callable[[Sequence[str]], str]] = {
    ("nvidia", "cuda_version_lower_bound"): lambda values: f"this one supports up to {values[0]}",
    ("nvidia", "sm_arch"): lambda values: f"this GPU has {_capability(values[0])}",
    ("intel", "device_ip"): lambda values: (
        f"this machine has {listed([titled(value) for value in values], 'and')}"
    ),
    ("x86_64", "level"): lambda values: f"this CPU has {_level(values[0])}",
    ("aarch64", "version"): lambda values: f"this CPU has ARMv{values[0]}",
}

# Where the namespace supports something, of the feature nothing.
_LACKS: dict[tuple[str, str], str] = {
    ("nvidia", "sm_arch"): "no GPU is found here",
    ("amd", "gfx_arch"): "no GPU is found here",
    ("amd", "rocm_version"): "which is not found here",
}

DEVICES: dict[str, str] = {
    "nvidia": "NVIDIA GPU or driver",
    "amd": "AMD GPU",
    "intel": "Intel GPU",
    "ascend": "Ascend NPU",
}
"""The device or driver without which a namespace supports nothing."""
