"""The catalogue: builds that exist under other URLs or names, described as variants."""
