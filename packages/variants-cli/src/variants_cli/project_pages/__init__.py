"""The page of a project on an index: the links that installers read, and what people read.

It is a page of the simple API in HTML (PEP 503). Around the links it shows the project's versions
and variants, and a script in it finds the variant for a machine, without a server.
"""

from .page import design, render

__all__ = ["design", "render"]
