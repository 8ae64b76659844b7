"""The first story, as people live it: Otto brings a message, Riley approves the reply, Morgan watches, and it arrives once."""

import re
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path
from uuid import UUID

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests import proving
from tests.acceptance.triage import Triage, ledger
from tests.stack import Stack

PHONE = {"width": 390, "height": 844}


@pytest.fixture
def message(tmp_path: Path) -> Path:
    """A message that is none of the project's."""
    mail = EmailMessage()
    mail["From"] = "Jürgen Öztürk <j.oeztuerk@kontor-nord.example>"
    mail["To"] = "support@fernhill.example"
    mail["Subject"] = "Charged twice? INV-90017"
    mail["Message-ID"] = "<story-1@kontor-nord.example>"
    mail.set_content("Hello,\n\nwe were charged 412.50 EUR twice for INV-90017. Please check.\n\nJürgen\n")
    file = tmp_path / "from-a-customer.eml"
    file.write_bytes(mail.as_bytes())
    return file


def signed_in(page: Page, server: Stack, name: str) -> Page:
    page.goto(f"{server.base_url}/sign-in")
    page.get_by_role("button", name=re.compile(f"Continue as {name}")).click()
    page.wait_for_url(lambda url: "/sign-in" not in url)
    if name in ("Riley", "Sam"):  # they decide: what has a high risk asks again who they are, and that is told in tests/approvals
        proving.in_the_demo(page, server.base_url)
    return page


def test_a_message_is_answered_once_by_whom_it_concerns(
    page: Page, new_context: Callable[..., BrowserContext], server: Stack, message: Path
):
    run = start_from_upload(signed_in(page, server, "Otto"), server, message)

    morgan = signed_in(new_context().new_page(), server, "Morgan")
    morgan.goto(f"{server.base_url}/runs/{run.id}")
    expect(morgan.get_by_text("Waiting for a reviewer").first).to_be_visible()
    phone = signed_in(new_context(viewport=PHONE).new_page(), server, "Morgan")
    phone.goto(f"{server.base_url}/runs/{run.id}?q=approved")

    riley = signed_in(new_context().new_page(), server, "Riley")
    action = run.waiting_action()
    riley.goto(f"{server.base_url}/actions/{UUID(str(action['id']))}")
    expect(riley.get_by_text("j.oeztuerk@kontor-nord.example").first).to_be_visible()
    riley.get_by_role("button", name=re.compile("Approve exactly this")).or_(
        riley.get_by_role("link", name=re.compile("Approve exactly this"))
    ).click()
    riley.get_by_role("button", name=re.compile("Approve and")).click()
    expect(riley.get_by_text(re.compile("Approved by you|You approved")).first).to_be_visible()

    for watching in (morgan, phone):  # neither was reloaded
        expect(watching.locator(".run__head .st")).to_have_text(re.compile("Done"))
    expect(phone.locator("#run-timeline mark").first).to_have_text(re.compile("approved", re.IGNORECASE))  # what came since is searched too
    expect(morgan.locator("#run-timeline mark")).to_have_count(0)
    run.wait_for("succeeded")
    what_arrived_is_what_was_approved(run)


def start_from_upload(otto: Page, server: Stack, message: Path) -> Triage:
    otto.goto(f"{server.base_url}/runs/new")
    otto.set_input_files("input[type=file]", message)
    expect(otto.get_by_text("Charged twice? INV-90017").first).to_be_visible()
    otto.get_by_role("button", name="Start run").click()
    otto.wait_for_url(re.compile(r"/runs/[0-9a-f-]{36}$"))
    ref = otto.locator("text=/RN-[0-9A-Z]+/").first.inner_text()
    return Triage(server, re.search(r"RN-[0-9A-Z]+", ref)[0])


def what_arrived_is_what_was_approved(run: Triage) -> None:
    (received,) = run.messages()
    stored = run.stored_action()
    arguments = stored["arguments"]
    assert [address.addr_spec for address in received["To"].addresses] == stored["recipients"] == ["j.oeztuerk@kontor-nord.example"]
    assert str(received["From"]) == arguments["sender"]
    assert received["Subject"] == arguments["subject"]
    assert received["Date"].datetime.tzinfo is not None
    assert received["In-Reply-To"] == arguments["in_reply_to"] == "<story-1@kontor-nord.example>"
    assert received.get_body().get_content() == arguments["body"]
    names = [attachment["name"] for attachment in stored["attachments"]]
    assert [part.get_filename() for part in received.iter_attachments()] == names
    notes = [effect for effect in ledger(run.stack, "crm.note") if effect["done"] == 1]
    assert any(effect["key"] == run.grant_key("update_crm") for effect in notes)
