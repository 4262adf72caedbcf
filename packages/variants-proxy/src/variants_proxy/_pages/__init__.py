"""What clients get: pages, views of projects, METADATA and files."""
