"""Ten steps with effects on the desk, for the test that kills workers at random. A workflow module like any other: settings name it."""

from examples.support_triage.tools import check_account, update_crm
from runs.engine.workflow import Channel, workflow

ACCOUNT, ADDRESS = "00932", "marta.oyelaran@brightwater.example"


@workflow("crashing", version=1, title="Ten steps")
def crashing(run: Channel, name: str) -> None:
    run.plan("Check the account", "Update the CRM")
    for number in range(5):
        run.step(check_account, ADDRESS)
        run.step(update_crm, ACCOUNT, note=f"{name}, note {number}")
    run.report(f"{name} is done")


@workflow("taken-back", version=1, title="A note that is taken back")
def taken_back(run: Channel, name: str) -> None:
    run.plan("Update the CRM")
    run.step(update_crm, ACCOUNT, note=f"{name} is there")
    run.ask("Shall it stay?")
