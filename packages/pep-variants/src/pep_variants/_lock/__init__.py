"""Variants in lock files (PEP 751): the table, and which wheel of an entry fits."""
