"""``uv-variants doctor``: whether what is installed and locked fits this machine, and why not."""
