"""Project pages for installers: HTML and JSON."""
