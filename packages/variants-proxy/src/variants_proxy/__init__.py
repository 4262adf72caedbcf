"""The index proxy: an ASGI application that serves upstream indexes with plain wheels only.

Of each version it lists the variant that fits the machine, under its plain filename.
`application.create_app` makes the application for `settings.Settings`; `urls.encode` makes the
platform key of a `Machine`, which is part of every URL. `service` gives the same answers to a
program in the same process; clients that make keys and URLs import no server.
"""
