"""Wheel variants for any resolvelib provider."""
