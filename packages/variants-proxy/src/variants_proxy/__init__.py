"""The index proxy: an ASGI application that serves upstream indexes with plain wheels only.

Of each version it lists the variant that fits the machine, under its plain filename. `create_app`
makes the application for `Settings`; `encode` makes the platform key of a `Machine`, which is part
of every URL (see `urls`).

The names in ``__all__`` are stable: changes are announced in the changelog. They are imported on
first use, so that clients, which make keys and URLs, do not import a server.
"""
