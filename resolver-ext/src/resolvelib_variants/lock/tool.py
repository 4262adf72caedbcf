"""What lock files say beyond their specification, in the tables that are free for tools.

Which dependencies are needed may depend on the variant that is selected when a lock is installed,
but no marker in a lock file may ask for that (PEP 825). So the requirements that do ask are kept
as they are, and with them what was asked for in the first place: whoever reads this can leave out
what the selected variants do not need. Everybody else installs a little more.
"""

from __future__ import annotations

KEY = "pep-variants"

REQUIREMENTS = "requirements"
"""In ``[tool.pep-variants]``: names, with their extras, of the packages that were asked for."""

REQUIRES_DIST = "requires-dist"
"""In ``[packages.tool.pep-variants]``: list of ``Requires-Dist`` values, or a table of lists by
variant label (empty for non-variant files) where they differ. Only where markers ask for variants
or extras play a part; all others need what their ``dependencies`` list."""
