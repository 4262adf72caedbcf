"""Wheel variants for any resolvelib provider.

`VariantProvider` wraps a provider, `VariantOrdering` orders the candidates of any other resolver.
With the extra ``index``, ``resolvelib_variants.resolution`` resolves over real package indexes.

The names of ``__all__`` are the public interface (``docs/reference/stability.md``); every other
module and name is internal and may change in any release. They are imported on first access.
"""

TYPE_CHECKING = False  # for type checkers; `typing` would take time at every start

if TYPE_CHECKING:
    from .abi import AbiRequirement, AbiRequirements
    from .interfaces import (
        CandidateFiles,
        Chosen,
        CoherenceListener,
        Installed,
        Listener,
        MetadataHashes,
        ProviderFiles,
        VersionOrder,
    )
    from .ordering import VariantOrdering
    from .provider import TransparentProvider, VariantProvider

    __version__: str

__all__ = [
    "AbiRequirement",
    "AbiRequirements",
    "CandidateFiles",
    "Chosen",
    "CoherenceListener",
    "Installed",
    "Listener",
    "MetadataHashes",
    "ProviderFiles",
    "TransparentProvider",
    "VariantOrdering",
    "VariantProvider",
    "VersionOrder",
    "__version__",
]

_NAMES = {
    "abi": ("AbiRequirement", "AbiRequirements"),
    "interfaces": (
        "CandidateFiles",
        "Chosen",
        "CoherenceListener",
        "Installed",
        "Listener",
        "MetadataHashes",
        "ProviderFiles",
        "VersionOrder",
    ),
    "ordering": ("VariantOrdering",),
    "provider": ("TransparentProvider", "VariantProvider"),
}


def __getattr__(name: str) -> object:
    """Import the public *name* from its module (PEP 562)."""
    from importlib import import_module

    value: object
    if name == "__version__":
        from importlib.metadata import version

        value = version("resolvelib-variants")
    elif module := next((module for module, names in _NAMES.items() if name in names), ""):
        value = getattr(import_module(f".{module}", __name__), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted(__all__)
