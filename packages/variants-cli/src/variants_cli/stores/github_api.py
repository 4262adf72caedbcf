"""Requests to the REST API of GitHub: the token, retries, and what answers mean."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any

import httpx

from pep_variants.errors import redacted

from .store import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

API = "https://api.github.com"
TRIES = 6
TIMEOUT = httpx.Timeout(60.0, read=300.0)

_LONGEST_PAUSE = 60.0


class GithubApi:
    """The REST API with the token of the user. Methods raise `StoreError`."""

    def __init__(
        self,
        place: str,
        environ: Mapping[str, str],
        client: Callable[[str], httpx.Client],
        pause: float,
    ) -> None:
        """Set up; nothing is requested.

        Args:
            place: what messages call the repository.
            environ: ``GH_TOKEN`` or ``GITHUB_TOKEN``, ``GITHUB_API_URL``.
            client: opens a client for requests to a URL.
            pause: seconds before the first repetition of a request.

        Raises:
            StoreError: there is no token.
        """
        self._place = place
        self._token = environ.get("GH_TOKEN") or environ.get("GITHUB_TOKEN") or ""
        if not self._token:
            raise StoreError(
                f"{place}: set GH_TOKEN to a token that may write contents of the repository; "
                "in GitHub Actions to ${{ github.token }}, with permissions: contents: write"
            )
        self.url = (environ.get("GITHUB_API_URL") or API).rstrip("/")
        self.client = client(self.url)
        self._pause = pause

    def json(self, method: str, url: str, *, missing: bool = False, body: Any = None) -> Any:  # noqa: ANN401
        """Return what the API answers, None for 404 where that is *missing*."""
        problem = ""
        for number in range(TRIES):
            answer = None
            try:
                answer = self.client.request(
                    method, url, headers=self.headers(), json=body, timeout=TIMEOUT
                )
            except httpx.HTTPError as error:
                problem = f"{type(error).__name__} {error}".strip()
            else:
                if answer.status_code == 404 and missing:
                    return None
                if answer.is_success:
                    return answer.json() if answer.content else {}
                problem = f"status {answer.status_code}"
                is_limited = "rate limit" in answer.text.lower()
                if answer.status_code < 500 and answer.status_code != 429 and not is_limited:
                    raise self.refused(f"{method} {redacted(url)}", answer)
            if number + 1 < TRIES:
                self.wait(number + 1, answer)
        raise StoreError(f"{self._place}: {redacted(self.url)}: {problem}: try again later")

    def wait(self, number: int, answer: httpx.Response | None = None) -> None:
        """Wait before the repetition *number*, counted from 1, as long as *answer* asks for."""
        said = answer.headers.get("Retry-After", "") if answer is not None else ""
        seconds = float(said) if said.isdecimal() else self._pause * 2 ** (number - 1)
        time.sleep(min(seconds, _LONGEST_PAUSE) * random.uniform(0.8, 1.2))  # noqa: S311 - a pause

    def headers(self) -> dict[str, str]:
        """Return the headers of every request."""
        return {
            "Authorization": f"Bearer {self._token}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
            "User-Agent": "pep-variants",
        }

    def refused(self, what: str, answer: httpx.Response) -> StoreError:
        """Return the error for an *answer* that repeating the request does not change."""
        try:
            reason = str(answer.json().get("message", ""))[:200]
        except (ValueError, AttributeError):
            reason = ""
        hint = ""
        if answer.status_code in (401, 403, 404):
            hint = ": may the token (GH_TOKEN) write contents of this repository?"
        shown = f"{reason}, " if reason else ""
        return StoreError(f"{self._place}: {what} ({shown}status {answer.status_code}){hint}")
