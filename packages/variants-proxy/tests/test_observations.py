"""Reports for clients about their projects."""

from __future__ import annotations

from variants_proxy.choice.views import Client
from variants_proxy.client.key import Machine
from variants_proxy.projects.observations import PlainProjects


def test_a_project_is_plain_while_each_of_its_pages_was() -> None:
    projects = PlainProjects()
    here, there = Client(Machine(), "here"), Client(Machine(), "there")
    assert projects.is_plain(here, "app") is None
    projects.note(here, "app", plain=True)
    projects.note(there, "app", plain=False)
    assert (projects.is_plain(here, "app"), projects.is_plain(there, "app")) == (True, False)
    # Another index has variants of it, and then the first one is asked again.
    projects.note(here, "app", plain=False)
    projects.note(here, "app", plain=True)
    assert projects.is_plain(here, "app") is False
