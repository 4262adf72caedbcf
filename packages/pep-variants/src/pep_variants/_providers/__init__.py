"""Built-in providers: our implementations of what the field's plugin packages report.

They stand in, in process and without an install, for the packages that metadata names; see
`known` for which package, which versions and which namespace each one stands in for.
"""
