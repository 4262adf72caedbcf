"""Wheel variants for any resolvelib provider.

`VariantProvider` wraps a provider, `VariantOrdering` orders the candidates of any other resolver.
With the extra ``index``, ``resolvelib_variants.resolution`` resolves over real package indexes.

The names of ``__all__`` are the public interface (``docs/reference/stability.md``); every other
module and name is internal and may change in any release. They are imported on first access.
"""

TYPE_CHECKING = False  # for type checkers; `typing` would take time at every start

if TYPE_CHECKING:
    from .abi_requirements import AbiRequirement, AbiRequirements
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
    "abi_requirements": "AbiRequirement AbiRequirements",
    "interfaces": (
        "CandidateFiles Chosen CoherenceListener Installed Listener MetadataHashes ProviderFiles "
        "VersionOrder"
    ),
    "ordering": "VariantOrdering",
    "provider": "TransparentProvider VariantProvider",
}
"""The names of each module, imported on first access."""


def __getattr__(name: str) -> object:
    """Import the public *name* from its module (PEP 562)."""
    from pep_variants.internal import lazy_name

    return lazy_name(__name__, _NAMES, name)


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted(__all__)
