"""Wheel variants for any resolvelib provider."""

from .arranger import Arranger, CandidateFiles, Listener

__all__ = ["Arranger", "CandidateFiles", "Listener"]
