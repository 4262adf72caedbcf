"""Makes the pip of this environment aware of wheel variants."""

BUILT_IN = __name__.startswith("pip.")
"""This is part of a pip, which was built with it inside, not a guest beside any pip."""
