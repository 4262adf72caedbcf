"""Publishing distributions and their metadata: what is uploaded where, in which order."""
