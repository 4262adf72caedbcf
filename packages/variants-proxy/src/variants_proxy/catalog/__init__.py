"""The catalogue: published wheels of existing builds, listed as variants on a project's page."""
