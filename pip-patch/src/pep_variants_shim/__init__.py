"""Makes the pip of this environment aware of wheel variants."""

BUILT_IN = __name__.startswith("pip.")
"""This is part of a pip, which was built with it inside, not a guest beside any pip."""

LOCAL = "+variants."
"""How the version of such a pip goes on after that of the pip it was built from."""
