"""The command ``uv-variants``: unmodified uv with wheel variants. It has no public Python API."""
