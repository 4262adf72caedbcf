"""The compatibility engine for wheel variants."""
