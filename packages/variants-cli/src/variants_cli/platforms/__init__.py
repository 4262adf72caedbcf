"""Example platform files, one for each class of machine: data, no code."""
