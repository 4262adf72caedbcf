"""``uv-variants doctor``: whether what is installed and locked fits this machine, and why not."""

# Size: the documentation of a package.
