"""The variants command."""
