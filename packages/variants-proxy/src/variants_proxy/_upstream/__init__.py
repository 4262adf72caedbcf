"""Upstream indexes: connections, pages and metadata, fetched once for all clients and kept."""
