"""Patches of pip, a module per part of pip.

A patch replaces a function by one that calls it, see `guard.replace`. Patches only adapt: the
modules beside this package decide.
"""
