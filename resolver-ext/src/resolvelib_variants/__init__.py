"""Wheel variants for any resolvelib provider."""

from .arranger import Arranger, CandidateFiles, Listener
from .provider import ProviderFiles, VariantProvider

__all__ = ["Arranger", "CandidateFiles", "Listener", "ProviderFiles", "VariantProvider"]
