"""The page for people at the root of a proxy, and the lines that they paste."""
