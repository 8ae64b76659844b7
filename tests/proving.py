"""For tests of what asks again who somebody is (access/step_up.py): sessions that have shown it, or not for a while."""

from datetime import timedelta

from django.test import Client
from playwright.sync_api import Page

from access import step_up
from config import clock


def shown(client: Client, *, ago: timedelta = timedelta()) -> Client:
    """The session of this client, signed in already, has shown it so long ago."""
    session = client.session
    session[step_up.MARK] = (clock.now() - ago).isoformat()
    session.save()
    return client


def in_the_demo(page: Page, base_url: str) -> None:
    """The click that shows it in the demo, for a browser that is signed in there."""
    token = next(cookie["value"] for cookie in page.context.cookies(base_url) if cookie["name"].endswith("csrf"))
    sent = {"hr_with": "demo", "hr_to": "/", "hr_method": "get", "csrfmiddlewaretoken": token}
    answer = page.request.post(f"{base_url}/confirm", form=sent, headers={"Referer": f"{base_url}/"}, max_redirects=0)
    assert answer.status == 302, answer.text()
