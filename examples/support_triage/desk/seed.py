"""The accounts that the example's tickets are about. Invented; the card endings belong to nobody."""

from typing import Any


def _paid(reference: str, date: str, amount: str, method: str, note: str = "") -> dict[str, str]:
    return {"id": reference, "date": date, "amount": amount, "currency": "EUR", "status": "settled", "method": method, "note": note}


def _invoice(number: str, date: str, amount: str, title: str, *payments: dict[str, str]) -> dict[str, Any]:
    return {"number": number, "date": date, "amount": amount, "currency": "EUR", "title": title, "payments": list(payments)}


def _renewing(pk: str, name: str, contact: str, email: str, plan: str, price: str, language: str) -> dict[str, Any]:
    """An account whose contract ends with the year."""
    return {
        "id": pk,
        "name": name,
        "contacts": [{"name": contact, "email": email}],
        "plan": plan,
        "language": language,
        "vat_number": "",
        "refunds_to": "bank transfer",
        "renewal": {"ends": "31 December 2026", "term": "2027", "price": price, "held_until": "18 December"},
        "invoices": [],
    }


ACCOUNTS: list[dict[str, Any]] = [
    {
        "id": "00932",
        "name": "Brightwater Logistics",
        "contacts": [
            {"name": "Marta Oyelaran", "email": "marta.oyelaran@brightwater.example"},
            {"name": "Accounts payable", "email": "accounts@brightwater.example"},
        ],
        "plan": "Business, 2023 prices",
        "language": "en",
        "vat_number": "IE 1234567FA",
        "refunds_to": "card ending 4417",
        "invoices": [
            _invoice(
                "INV-20931",
                "2026-11-17",
                "1284.00",
                "Business plan, 12 places, November to January",
                _paid("PAY-88120", "2026-11-24", "1284.00", "card ending 4417", "scheduled payment"),
                _paid("PAY-88121", "2026-11-24", "1284.00", "card ending 4417", "retry after timeout"),
            ),
            _invoice(
                "INV-19804",
                "2026-08-17",
                "1284.00",
                "Business plan, 12 places, August to October",
                _paid("PAY-81377", "2026-08-24", "1284.00", "card ending 4417", "scheduled payment"),
            ),
        ],
    },
    {
        "id": "01184",
        "name": "Alder Press, Lda.",
        "contacts": [{"name": "Ines Carvalho", "email": "ines@alderpress.example"}],
        "plan": "Business",
        "language": "pt",
        "vat_number": "PT 501 234 567",
        "refunds_to": "bank transfer",
        "invoices": [
            _invoice(
                "INV-21077",
                "2026-11-28",
                "418.20",
                "Business plan, November",
                _paid("PAY-88307", "2026-11-28", "418.20", "bank transfer"),
            ),
        ],
    },
    {
        "id": "00417",
        "name": "Möbelwerk Hallstedt GmbH",
        "contacts": [{"name": "Jürgen Großmann", "email": "j.grossmann@moebelwerk-hallstedt.example"}],
        "plan": "Archive, ended 31 October 2026",
        "language": "de",
        "vat_number": "DE 123 456 789",
        "refunds_to": "direct debit",
        "invoices": [
            _invoice(
                "INV-20877",
                "2026-11-13",
                "1079.00",
                "Archive plan, year from November 2026",
                _paid("PAY-87914", "2026-11-20", "1079.00", "direct debit", "collected after the plan had ended"),
            ),
        ],
    },
    _renewing("01302", "Kestrel Print", "Noor Haddad", "noor.haddad@kestrelprint.example", "Business, 20 places", "4,960.00", "en"),
    _renewing("01355", "Nordkontor", "Anneli Sund", "anneli.sund@nordkontor.example", "Business, 8 places", "2,140.00", "sv"),
    _renewing("01371", "Halden Marine", "Tomasz Zieliński", "tomasz@haldenmarine.example", "Business, 12 places", "3,110.00", "pl"),
]
