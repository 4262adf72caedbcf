"""Detection of what this machine supports: the detector, and the providers that are built in."""
