"""Contracts that are to be renewed: the customer signs on the account's page, here anybody for them, and whoever subscribed is told."""

from sqlite3 import Connection
from typing import Any

from . import accounts, hooks, ledger
from .errors import Missing

ABOUT = "contracts"  # what who is told of a signature has subscribed to, where others name a ticket


def of(db: Connection, account: dict[str, Any]) -> dict[str, Any] | None:
    """The contract that lies in an account, and since when it is signed; None where there is none, or nobody to be told of it."""
    if not account.get("renewal") or all(hook["ticket"] not in ("", ABOUT) for hook in hooks.listing(db)):
        return None
    found = ledger.find(db, _key(account))
    return {**account["renewal"], "signed_at": found["first_at"] if found["found"] else None}


def sign(db: Connection, number: str) -> None:
    """Sign it; once more changes nothing, and nobody is told. Raises Missing."""
    account = accounts.get(db, number)
    if of(db, account) is None:
        raise Missing(f"No contract lies in account {number}.")

    def do() -> tuple[str, dict[str, Any]]:
        hooks.tell(db, "contract.signed", {"account": number, "term": account["renewal"]["term"]}, about=ABOUT)
        return f"accounts/{number}/contract", {"account": number}

    ledger.once(db, key=_key(account), kind="contract.sign", digest="", do=do)


def _key(account: dict[str, Any]) -> str:
    """With spaces: no Idempotency-Key that somebody sends can be it."""
    return f"contract {account['id']} {account['renewal']['term']}"
