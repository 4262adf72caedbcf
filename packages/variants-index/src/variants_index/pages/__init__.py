"""Pages of the simple API: data, readers and writers of JSON (PEP 691) and HTML (PEP 503).

Pure functions between bytes and data. An index is not trusted: an invalid file entry or attribute
is left out, an invalid page is an error. Reading a page of at most `limits.PAGE_BYTES` takes less
than two seconds and 300 MB, whatever it contains.
"""

from packaging.utils import canonicalize_name

from ._html_reader import read_html_page, read_html_projects
from ._json_reader import read_json_page, read_json_projects
from ._page import ACCEPT, API_VERSION, HTML, JSON, Links, Page, PageFile, is_filename
from ._page_writer import GENERATOR, html_page, html_projects, json_page, json_projects

__all__ = [
    "ACCEPT", "API_VERSION", "GENERATOR", "HTML", "JSON", "Links", "Page", "PageFile", "html_page",
    "html_projects", "json_page", "json_projects", "read_page", "read_projects",
]  # fmt: skip


def read_page(body: bytes, content_type: str, url: str, project: str = "") -> Page:
    """Read a project page, or any HTML page with links to files (find-links, directory listings).

    Args:
        body: of the response, decompressed.
        content_type: header of the response; what is not JSON is read as HTML.
        url: after redirects; links are relative to it.
        project: name of the project.

    Raises:
        InvalidPage: it is not a page, or of an unknown version of the API.

    >>> from variants_index.pages import read_page
    >>> body = b'<a href="../tool-1.0-py3-none-any-cu128.whl#sha256=ab12">tool</a>'
    >>> page = read_page(body, "text/html", "https://index.example/simple/tool/", "tool")
    >>> [file.url for file in page.files]
    ['https://index.example/simple/tool-1.0-py3-none-any-cu128.whl']
    """
    name = canonicalize_name(project)
    if _is_json(content_type):
        return read_json_page(body, url, name)
    return read_html_page(body, url, name)


def read_projects(body: bytes, content_type: str, url: str) -> tuple[str, ...]:
    """Return the normalized names on a page that lists the projects of an index, in its order.

    Args:
        body: of the response, decompressed.
        content_type: header of the response; what is not JSON is read as HTML.
        url: of the page, for messages.

    Raises:
        InvalidPage: it is not a list of projects.

    >>> from variants_index.pages import read_projects
    >>> body = b'<a href="flash_attn/">Flash_Attn</a> <a href="torch/">torch</a>'
    >>> read_projects(body, "text/html", "https://index.example/simple/")
    ('flash-attn', 'torch')
    """
    names = (
        read_json_projects(body, url) if _is_json(content_type) else read_html_projects(body, url)
    )
    return tuple(dict.fromkeys(canonicalize_name(name) for name in names if is_filename(name)))


def _is_json(content_type: str) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    return kind == JSON or kind.endswith(("/json", "+json"))
