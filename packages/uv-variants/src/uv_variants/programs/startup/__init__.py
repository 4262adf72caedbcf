"""A folder for PYTHONPATH: `sitecustomize` is all there is in it."""
