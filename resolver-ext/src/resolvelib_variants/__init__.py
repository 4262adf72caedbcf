"""Wheel variants for any resolvelib provider."""

from .abi import AbiRequirement
from .arranger import Arranger, CandidateFiles, Listener
from .coherence import Chosen, Installed
from .provider import AbiRequirements, ProviderFiles, VariantProvider

__all__ = [
    "AbiRequirement",
    "AbiRequirements",
    "Arranger",
    "CandidateFiles",
    "Chosen",
    "Installed",
    "Listener",
    "ProviderFiles",
    "VariantProvider",
]
