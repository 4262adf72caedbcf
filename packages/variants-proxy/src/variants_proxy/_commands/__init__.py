"""The command variants-proxy: serve, url and export."""
