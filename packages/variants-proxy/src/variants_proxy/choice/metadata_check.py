"""Whether a variant wheel is what its index says of its label (PEP 825, "Metadata consistency").

Clients of the proxy see plain filenames and cannot compare: an installer that knows variants does,
after downloading. So every wheel with a label is looked into before a client is sent to it, by
range requests, or downloaded once if its server serves none.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import IO

from pep_variants import Metadata, MetadataError
from pep_variants.internal import VARIANT_FILE, check_promise, iter_properties, open_wheel, redacted
from variants_index import PageFile, Session, Store
from variants_index.internal import opened

_RECORD = "proxy-checked"


@dataclass(frozen=True)
class MetadataCheck:
    """What the index says of a variant wheel, to compare with the metadata inside.

    Attributes:
        index: URL of the index that lists it.
        file: the wheel.
        label: of its variant.
        metadata: the index's metadata of the version; None if it is not usable, then only the
            label is compared.
    """

    index: str
    file: PageFile
    label: str
    metadata: Metadata | None

    def is_kept(self, store: Store) -> bool:
        """Return whether the wheel is known to agree."""
        return "sha256" in self.file.hashes and store.get(_RECORD, self.key) is not None

    def keep(self, store: Store) -> None:
        """Store that the wheel agrees."""
        if "sha256" in self.file.hashes:
            store.put(_RECORD, self.key, b"")

    def look(self, session: Session) -> None:
        """Compare the wheel.

        Raises:
            PackageIndexError: it cannot be read.
            InvalidWheel, MetadataError, InconsistentMetadata: as `compare`.
        """
        with opened(session, self.file.url, self.file.hashes) as stream:
            self.compare(stream)

    def compare(self, stream: IO[bytes]) -> None:
        """Compare the wheel in *stream*.

        Raises:
            InvalidWheel: it is not a wheel, or another project's.
            MetadataError: it has no variant metadata, invalid one, or that of another label.
            InconsistentMetadata: its properties are not those of the index.
        """
        with open_wheel(stream, self.file.url, filename=self.file.filename) as contents:
            found = contents.variant_metadata()
        if found is None:
            problem = f"is named a variant wheel, but has no {VARIANT_FILE}"
            raise MetadataError(redacted(self.file.url), "", problem)
        check_promise(self.metadata or found, found, self.label)

    @property
    def key(self) -> str:
        """Hash of everything that the result depends on."""
        said: object = None
        if self.metadata is not None:
            properties = self.metadata.properties_of(self.metadata.label_of(self.label))
            said = [] if properties is None else sorted(map(str, iter_properties(properties)))
        facts = json.dumps(
            [self.index, self.file.url, sorted(self.file.hashes.items()), self.label, said]
        )
        return hashlib.sha256(facts.encode("utf-8", "surrogatepass")).hexdigest()
