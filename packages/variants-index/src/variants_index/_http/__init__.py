"""Requests to package indexes: transport, credentials, addresses, ranges, limits."""
