"""Installation: what was decided about a variant is kept with it, where markers need it."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

from pip._vendor.packaging.utils import canonicalize_name

from ..decision import keep_decision
from ..hook import replace
from ..session import current_session, logger


def patch_install(module: ModuleType) -> None:
    """Keep the decision in the dist-info folder that pip has just filled."""

    @replace(module, "install_wheel")
    def install_wheel(
        original: Callable[..., None],
        name: str,
        wheel_path: str,
        scheme: Any,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        original(name, wheel_path, scheme, *args, **kwargs)
        session = current_session()
        text = session.decisions.get(canonicalize_name(name)) if session is not None else None
        if text is None:
            return
        try:
            for folder in {scheme.purelib, scheme.platlib}:
                for found in glob.glob(os.path.join(glob.escape(folder), "*.dist-info")):  # noqa: PTH118, PTH207
                    project = os.path.basename(found).partition("-")[0]  # noqa: PTH119
                    if canonicalize_name(project) == canonicalize_name(name):
                        keep_decision(found, text)
        except OSError:  # the wheel is installed, and that is what matters
            logger.debug("the decision about %s is not kept", name, exc_info=True)
