"""Wheels with rewritten METADATA: prepared, and streamed."""
