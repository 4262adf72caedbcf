"""A resolver over real indexes, for this machine or others, built on `VariantProvider`.

Requirements (`parse_requirement`, `read_file`) and a `Target` of `variants_index.target` go in;
`IndexResolver` returns a `Resolution`, or raises `NoSolution`, which says why there is none.
`explain` shows all variants of one version. The names of ``__all__`` are all that others use.
"""

from .errors import NoSolution, RequirementError, ResolverError, SameFiles
from .requirements import RequirementSet, Wanted, parse_requirement, read_file
from .resolver import IndexResolver, Notes
from .result import Package, Resolution
from .version_report import Explanation, explain

__all__ = [
    "Explanation", "IndexResolver", "NoSolution", "Notes", "Package", "RequirementError",
    "RequirementSet", "Resolution", "ResolverError", "SameFiles", "Wanted", "explain",
    "parse_requirement", "read_file",
]  # fmt: skip
