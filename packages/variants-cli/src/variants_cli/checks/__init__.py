"""What can be wrong with published variants: metadata, wheels, and directories of both.

Checks return findings instead of raising, so that one run tells everything.
"""
