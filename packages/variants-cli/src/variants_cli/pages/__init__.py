"""Pages for people: of a build matrix, and of a project on an index."""
