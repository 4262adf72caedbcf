"""Package indexes: distributions of a directory or another index, their metadata, and pages.

A project's state on an index is its page and the metadata documents which that lists.
"""
