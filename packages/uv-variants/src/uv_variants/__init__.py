"""Makes unmodified uv aware of wheel variants."""
