"""Builds the patched pip: the wheel of an upstream pip with the shim inside it.

`upstream` gets the wheel, `baking` puts the shim in, `archive` reads and writes wheels.
"""
