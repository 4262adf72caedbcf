"""Reading and writing lock files (PEP 751)."""
