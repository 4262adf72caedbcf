"""Interception: an HTTP proxy between one uv and its indexes. The package can be taken out whole.

Before uv starts a command needs `authority.Authority`, whose certificate uv has to trust beside
those that it trusts anyway (`trust_bundle.trusted_roots`). `server.Transport` then answers uv's
requests; it is imported with the first of them, because a server takes long to import.

It takes the origins that are answered here, the ASGI application that answers for them, and the
user's own way to the outside (`route.Outbound`); all else is uv's own traffic, passed on as it is.
A uv that can be told the proxy of an index needs none of this.
"""
