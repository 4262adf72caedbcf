"""A build matrix: axes of values whose combinations are the variants of a project.

The way of the data: `reading` (TOML) → `model` → `combination` (variants) → `output` (for people,
shells and CI services) or `building` (wheels).
"""
