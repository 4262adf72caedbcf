"""Wheel variants for any resolvelib provider."""

from .abi import AbiRequirement
from .arranger import Arranger, CandidateFiles, CoherenceListener, Listener
from .coherence import Chosen, Installed
from .provider import AbiRequirements, ProviderFiles, VariantProvider

__all__ = [
    "AbiRequirement",
    "AbiRequirements",
    "Arranger",
    "CandidateFiles",
    "Chosen",
    "CoherenceListener",
    "Installed",
    "Listener",
    "ProviderFiles",
    "VariantProvider",
]
