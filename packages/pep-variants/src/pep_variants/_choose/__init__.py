"""The choice: ranking variants for a platform, explaining it, and reducing markers to it."""
