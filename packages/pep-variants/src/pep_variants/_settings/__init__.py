"""Settings in ``variants.toml`` files: where they are, whose they are, and what they may say."""
