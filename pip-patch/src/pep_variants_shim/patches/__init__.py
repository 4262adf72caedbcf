"""What is changed in pip, a module of patches per part of pip.

A patch replaces a function by one that calls it, see `hook.replace`. Patches only adapt; deciding
is the business of `session`.
"""
