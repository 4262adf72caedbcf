"""Builds the patched pip: the wheel of an upstream pip with the shim inside it.

`upstream` downloads the wheel, `repack` adds the shim, `archive` reads and writes wheels.
"""
