"""Lock files: ``pip lock`` writes what is known of variants, ``-r pylock.toml`` selects by it."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from ..session import current_session


def patch_lock(module: Any) -> None:
    """Add the metadata of variant wheels to a lock file that is written."""
    dumps = module.tomli_w.dumps

    def with_metadata(tree: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        session = current_session()
        return dumps(tree if session is None else session.locked(tree), *args, **kwargs)

    module.tomli_w = SimpleNamespace(dumps=with_metadata)


def patch_pylock(module: Any) -> None:
    """Select among the variant wheels of a lock file before pip reads their names."""
    loads = module.tomllib.loads

    def selected(text: str) -> Any:
        tree = loads(text)
        from ..locking import select_wheels

        return select_wheels(tree, current_session())

    module.tomllib = SimpleNamespace(**{**vars(module.tomllib), "loads": selected})
