"""Environment markers of requirements, evaluated once for a target."""

from __future__ import annotations

from collections.abc import Mapping

from packaging.markers import Marker


class TargetMarkers:
    """Evaluates markers for one marker environment and remembers the results."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self._results: dict[tuple[str, str], bool] = {}

    def apply(self, marker: Marker | None, extra: str = "") -> bool:
        """Return whether *marker* holds in the environment.

        Args:
            marker: of a requirement; one without a marker applies always.
            extra: normalized name; then return whether the marker holds because of this extra.
        """
        if marker is None:
            return not extra
        key = (str(marker), extra)
        if key not in self._results:
            held = marker.evaluate({**self._environment, "extra": extra})
            if held and extra:
                held = not marker.evaluate({**self._environment, "extra": ""})
            self._results[key] = held
        return self._results[key]
