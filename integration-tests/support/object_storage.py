"""Object storage on this machine: S3 by moto, with what it lacks, and with websites' pages."""

from __future__ import annotations

import contextlib
import logging
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

ACCESS_KEY = "publisher"
SECRET_KEY = "kept-out-of-messages"


@dataclass
class ObjectStorage:
    """A running server.

    Attributes:
        url: of the server; buckets are the first segments of paths.
        requests: method and path of each request.
        faults: returns the status with which a request fails, None for a request that succeeds;
            of its method, its path and its number. None: all succeed.
    """

    url: str
    requests: list[tuple[str, str]] = field(default_factory=list)
    faults: Callable[[str, str, int], int | None] | None = None

    def environ(self) -> dict[str, str]:
        """Return variables with which S3 clients use this server."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": "us-east-1",
        }


class _Application:
    """The WSGI application of moto.

    moto compares If-Match and writes without a lock; S3 does both at once. And where the path of
    a GET ends with a slash, this answers with its index document, as websites of S3 do.
    """

    def __init__(self, storage: ObjectStorage) -> None:
        self._inner = DomainDispatcherApplication(create_backend_app)
        self._storage = storage
        self._writing = threading.Lock()

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        self._storage.requests.append((method, path))
        faults = self._storage.faults
        status = faults(method, path, len(self._storage.requests)) if faults else None
        if status is not None:
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            start_response(f"{status} Fault", [("Content-Length", "0")])
            return []
        is_page = path.count("/") > 1 and path.endswith("/")
        if method in ("GET", "HEAD") and is_page and "HTTP_AUTHORIZATION" not in environ:
            environ["PATH_INFO"] = path + "index.html"
            environ["RAW_URI"] = environ["REQUEST_URI"] = environ["PATH_INFO"]
        if method == "PUT" and ("HTTP_IF_MATCH" in environ or "HTTP_IF_NONE_MATCH" in environ):
            with self._writing:
                return list(self._inner(environ, start_response))
        return self._inner(environ, start_response)  # type: ignore[no-any-return]


@contextlib.contextmanager
def object_storage(*buckets: str) -> Iterator[ObjectStorage]:
    """Yield a server with these empty buckets, which anyone may read."""
    import boto3

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    storage = ObjectStorage("")
    server = make_server("127.0.0.1", 0, _Application(storage), threaded=True)
    storage.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        client = boto3.client(
            "s3",
            endpoint_url=storage.url,
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
            region_name="us-east-1",
        )
        for bucket in buckets:
            client.create_bucket(Bucket=bucket, ACL="public-read")
        storage.requests.clear()
        yield storage
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        _reset()


def _reset() -> None:
    """Forget all buckets: moto keeps them for the process."""
    from moto.core.model_instances import reset_model_data

    reset_model_data()
