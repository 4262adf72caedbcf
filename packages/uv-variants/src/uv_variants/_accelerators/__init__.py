"""One lock for machines with different accelerators: a dependency group for each."""
