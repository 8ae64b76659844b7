"""For tests of what asks again who somebody is (access/step_up.py): sessions that have shown it, or not for a while."""

from datetime import timedelta

from django.test import Client

from access import step_up
from config import clock


def shown(client: Client, *, ago: timedelta = timedelta()) -> Client:
    """The session of this client, signed in already, has shown it so long ago."""
    session = client.session
    session[step_up.MARK] = (clock.now() - ago).isoformat()
    session.save()
    return client
