"""The cache of index pages and files on disk."""
