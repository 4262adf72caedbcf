"""Files for clients: redirects, streams and ranges."""
