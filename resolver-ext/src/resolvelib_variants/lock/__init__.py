"""Lock files: ``pylock.toml`` (PEP 751) with ``[packages.variants-json]`` (PEP 825).

`writing` turns resolutions into a file, `reading` chooses from a file what a target installs.
"""
