"""What people look at, of a build matrix: who gets what, the questions that decide, and tables."""
