"""Publishers of storage for tests, also as processes of their own; and a reader of the result.

Run as a program: ``python storage_publishers.py PLACE FOLDER``.
"""

import hashlib
import sys
from collections import defaultdict
from pathlib import Path
from urllib.parse import unquote

from pep_variants.formats.reader import read_metadata
from pep_variants.model.label import split_label
from variants_cli.indexing.wheelhouse import read_distribution
from variants_cli.publishing.release_contents import Release, ReleaseFile, entry_of
from variants_cli.publishing.stored_index import BASE, StoredIndex
from variants_cli.publishing.stores import open_store
from variants_index.pages import HTML, JSON, read_page, read_projects


def releases_in(folder):
    """The releases that a folder holds."""
    groups = defaultdict(list)
    for path in sorted(Path(folder).rglob("*.whl")):
        item = read_distribution(path)
        groups[item.project, item.version].append(ReleaseFile(item))
    return [Release(*key, tuple(files), None) for key, files in groups.items()]


def publish(place, folder, target=None):
    """Publish what *folder* holds, as `transaction.publish` does; return the metadata.

    Also the names of the documents that have labels of other batches.
    """
    target = target or StoredIndex(open_store(str(place)))
    releases = releases_in(folder)
    target.probe(releases)
    for release in releases:
        page = target.page(release.project)
        for file in release.files:
            listed = entry_of(page, file.filename)
            if listed is None or not target.is_same(file, listed):
                target.upload(file)
    documents = target.commit(releases)
    own = {
        release.document_name: {
            label
            for file in release.files
            if file.distribution.variant is not None
            for label in file.distribution.variant.metadata.variants
        }
        for release in releases
    }
    labels = {name: set(read_metadata(data, name).variants) for name, data in documents.items()}
    return documents, {name for name in documents if labels[name] - own[name]}


class Reader:
    """Reads an index in a store as its clients do, and checks that everything agrees."""

    def __init__(self, place):
        self.store = open_store(str(place))

    def get(self, path):
        found = self.store.get(path, 100_000_000)
        return None if found is None else found.data

    def page(self, project, name="index.v1_json"):
        data = self.get(f"simple/{project}/{name}")
        if data is None:
            return None
        kind = JSON if name.endswith("json") else HTML
        return read_page(data, kind, f"{BASE}simple/{project}/{name}", project)

    def projects(self):
        """The names on both lists of projects."""
        found = []
        for name, kind in (("index.html", HTML), ("index.v1_json", JSON)):
            data = self.get(f"simple/{name}")
            found.append(() if data is None else read_projects(data, kind, BASE))
        return found

    def labels(self, project, name="index.v1_json"):
        """The labels of each version; everything that the page lists is there and agrees."""
        page = self.page(project, name)
        if page is None:
            return {}
        documents, wheels = {}, defaultdict(set)
        for file in page.files:
            path = unquote(file.url.removeprefix(BASE))
            if file.filename.endswith("-variants.json"):
                data = self.get(path)
                assert data is not None, file.url
                assert hashlib.sha256(data).hexdigest() == file.hashes["sha256"], file.url
                documents[file.filename] = set(read_metadata(data, path).variants)
                continue
            data = self.get(path)
            assert data is not None, file.url
            assert hashlib.sha256(data).hexdigest() == file.hashes["sha256"], file.url
            if file.filename.endswith(".whl"):
                metadata = self.get(path + ".metadata")
                assert hashlib.sha256(metadata).hexdigest() == file.core_metadata["sha256"]
                parts = file.filename.split("-")
                label = split_label(file.filename)[1]
                if label is not None:
                    wheels[f"{parts[0]}-{parts[1]}-variants.json"].add(label)
        assert documents == dict(wheels)
        return documents

    def settled(self, project):
        """The labels, where HTML and JSON pages agree."""
        labels = self.labels(project)
        page, html = self.page(project), self.page(project, "index.html")
        urls = [sorted(file.url for file in shown.files) for shown in (page, html)]
        assert urls[0] == urls[1]
        assert all(project in names for names in self.projects())
        return labels


if __name__ == "__main__":
    publish(*sys.argv[1:3])
