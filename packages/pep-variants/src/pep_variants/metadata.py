"""Variant metadata: its data, its files, and how an index's release is read (PEP 825)."""

from ._digests import Digests
from ._formats.merging import check_promise, merge, merge_all
from ._formats.reader import metadata_from_tree, read_metadata, read_pyproject
from ._formats.tree import PropertyTree, Tree, joined
from ._formats.writer import write_metadata
from ._model.generation import GENERATIONS, V0_1_1, V0_2_0, Generation, schema_version
from ._model.metadata import Metadata, ProviderInfo
from ._model.property import (
    ABI_DEPENDENCY,
    NAME,
    VALUE,
    Features,
    Properties,
    Property,
    group_properties,
    iter_properties,
    properties_tree,
)
from ._release import (
    MAY_PASS,
    Absent,
    Failed,
    Fetch,
    FetchAnswer,
    LocalFile,
    NoRanges,
    ReleaseFile,
    ReleaseReader,
    Whole,
    read_response,
)

__all__ = [
    "ABI_DEPENDENCY", "GENERATIONS", "MAY_PASS", "NAME", "V0_1_1", "V0_2_0", "VALUE", "Absent",
    "Digests", "Failed", "Features", "Fetch", "FetchAnswer", "Generation", "LocalFile", "Metadata",
    "NoRanges", "Properties", "Property", "PropertyTree", "ProviderInfo", "ReleaseFile",
    "ReleaseReader", "Tree", "Whole", "check_promise", "group_properties", "iter_properties",
    "joined", "merge", "merge_all", "metadata_from_tree", "properties_tree", "read_metadata",
    "read_pyproject", "read_response", "schema_version", "write_metadata",
]  # fmt: skip
