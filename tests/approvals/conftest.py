"""What the tests of deciding begin with: a message that waits, and Riley, who may decide on it, signed in."""

import pytest
from django.test import Client

from tests import proving
from tests.approvals.mailing import Proposed, propose_mail, sent
from tests.cast import Cast


@pytest.fixture
def proposed(cast: Cast) -> Proposed:
    sent.clear()
    return propose_mail(cast, cc=["accounts@brightwater.example"])


@pytest.fixture
def riley(cast: Cast, client: Client) -> Client:
    client.force_login(cast.riley)
    return proving.shown(client)
