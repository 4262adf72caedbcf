"""The ASGI application and its HTTP server."""
