"""What is changed in pip, a module of patches per part of pip.

A patch replaces a function by one that calls it, with the same arguments whatever they are: new
parameters of a new pip pass through. Patches only adapt; deciding is the business of `session`.
"""
