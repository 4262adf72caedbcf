"""Publishers to storage for tests, also as processes of their own; and a reader of the result.

Run as a program: ``python storage_publishers.py PLACE FOLDER``.
"""

import hashlib
import sys
from collections import defaultdict
from pathlib import Path
from urllib.parse import unquote

from pep_variants import read_metadata, split_label
from variants_cli.publishing import transaction
from variants_cli.publishing.release_contents import read_releases
from variants_cli.publishing.stored_index import BASE, StoredIndex
from variants_cli.publishing.stores import open_store
from variants_index.pages import HTML, JSON, read_page, read_projects


def publish(place, folder, store=None):
    """Publish what *folder* holds."""
    target = StoredIndex(store or open_store(str(place)))
    return transaction.publish(target, read_releases(Path(folder)), lambda text: None)


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
        documents, wheels = {}, defaultdict(set)
        for file in page.files if page is not None else ():
            path = unquote(file.url.removeprefix(BASE))
            data = self.get(path)
            assert data is not None, file.url
            assert hashlib.sha256(data).hexdigest() == file.hashes["sha256"], file.url
            if file.filename.endswith("-variants.json"):
                documents[file.filename] = set(read_metadata(data, path).variants)
            elif file.filename.endswith(".whl"):
                metadata = self.get(path + ".metadata")
                assert hashlib.sha256(metadata).hexdigest() == file.core_metadata["sha256"]
                if (label := split_label(file.filename)[1]) is not None:
                    release = "-".join(file.filename.split("-")[:2])
                    wheels[f"{release}-variants.json"].add(label)
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
