"""Reading, writing and merging variant metadata in every generation of the format."""
