"""Makes the pip of this environment aware of wheel variants."""
