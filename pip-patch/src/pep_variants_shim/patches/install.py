"""Installation: records the choice of a variant in its dist-info folder, where markers need it."""

from __future__ import annotations

import glob
import os
from types import ModuleType
from typing import Any

from pip._vendor.packaging.utils import canonicalize_name

from ..errors import logger
from ..guard import Original, replace
from ..markers import CHOICE_FILE
from ..session import current_session


def patch_install(module: ModuleType) -> None:
    """Record the choice in the dist-info folder that pip has just written."""

    @replace(module, "install_wheel", shows=True)
    def install_wheel(
        original: Original, name: str, wheel_path: str, scheme: Any, *args: Any, **kwargs: Any
    ) -> None:
        original(name, wheel_path, scheme, *args, **kwargs)
        session = current_session()
        text = session.choice_records.get(canonicalize_name(name)) if session is not None else None
        if text is None:
            return
        try:
            for folder in {scheme.purelib, scheme.platlib}:
                for found in glob.glob(os.path.join(glob.escape(folder), "*.dist-info")):  # noqa: PTH118, PTH207
                    project = os.path.basename(found).partition("-")[0]  # noqa: PTH119
                    if canonicalize_name(project) == canonicalize_name(name):
                        _record_choice(found, text)
        except OSError:  # the wheel is installed all the same
            logger.debug("the choice of %s cannot be recorded", name, exc_info=True)


def _record_choice(dist_info: str, text: str) -> None:
    """Write *text* to `CHOICE_FILE` in the folder *dist_info*, and list it in ``RECORD``.

    Raises:
        OSError: a file cannot be written.
    """
    from pep_variants.internal import record_line

    data = text.encode()
    with open(os.path.join(dist_info, CHOICE_FILE), "wb") as file:  # noqa: PTH118, PTH123
        file.write(data)
    path = f"{os.path.basename(dist_info)}/{CHOICE_FILE}"  # noqa: PTH119
    with open(os.path.join(dist_info, "RECORD"), "a", encoding="utf-8", newline="") as file:  # noqa: PTH118, PTH123
        file.write(record_line(path, data, "\r\n"))
