"""The machine of a client: its platform key, or its registered name."""
