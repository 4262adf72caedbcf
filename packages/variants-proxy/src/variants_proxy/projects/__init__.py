"""Views of projects: what one client gets of a project, and the METADATA of its wheels."""
