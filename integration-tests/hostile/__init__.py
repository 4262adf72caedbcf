"""A corpus of attacks on installers, a server that carries them out, and a runner per installer.

Needs nothing but the standard library; ``README.md`` describes the format of a case.
"""
