"""The values that everything works on: labels, properties, metadata, platforms.

Frozen dataclasses without input or output; what reads and writes them is `formats`.
"""
