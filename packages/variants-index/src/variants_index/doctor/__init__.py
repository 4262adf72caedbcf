"""What `variants doctor` and `uv-variants doctor` find about a machine and its installers.

Every module answers one question with a `findings.Part`: rows for people, a tree for JSON, and the
problems in it. Nothing is changed, and nothing but pip and uv is run.
"""
