"""Wheels and source distributions as files: reading within limits, copying with changes."""
