"""Checks of published variants: documents, wheels, directories, index pages and live indexes.

Checks return findings instead of raising, so that one run reports all of them.
"""
