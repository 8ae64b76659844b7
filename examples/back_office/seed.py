"""What the back office begins with. Invented; the card endings belong to nobody."""

from typing import Any


def _customer(name: str, street: str, postcode: str, city: str, phone: str, language: str, vat_number: str) -> dict[str, Any]:
    mail = f"accounts@{name.split()[0].lower()}.example"
    place = {"street": street, "postcode": postcode, "city": city, "phone": phone}
    return {"name": name} | place | {"invoice_email": mail, "language": language, "vat_number": vat_number or None, "terms": "30 days"}


CUSTOMERS: list[tuple[str, int, dict[str, Any]]] = [
    (
        "01371",
        57,
        {
            "name": "Halden Marine",
            "billing_address": "Nabrzeże 4, 81-339 Gdynia",
            "invoice_contact": "Ewa Lis",
            "purchase_order_needed": None,
            "plan": "Business",
            "seats": 12,
            "language": "pl",
            "vat_number": "PL 586 000 00 00",
            "terms": "30 days",
            "newsletter": False,
        },
    ),
    (
        "00932",
        12,
        {"name": "Brightwater Logistics", "billing_address": "4 Quay Street, Cork", "plan": "Business", "seats": 12},
    ),
    # whose records have a mistake in one field each: `requests/corrections` says which
    ("01022", 8, _customer("Baltic Rope Works", "Sadama 6", "10415", "Talinn", "+372 600 0022", "et", "EE 100 000 221")),
    ("01037", 19, _customer("Costa Têxtil", "Rua das Flores 88", "4000-002", "Porto", "+351 220 000 370", "pt", "PT 500 000 377")),
    ("01058", 31, _customer("Lindqvist Bygg", "Storgatn 4", "411 24", "Göteborg", "+46 31 000 058", "sv", "SE 000000005801")),
    ("01071", 11, _customer("Northgate Dental", "Aachener Straße 5", "50674", "Koln", "+49 221 000 071", "de", "DE 000 000 071")),
    ("01086", 5, _customer("Osei & Daughters", "27 Harbour Road", "8001", "Zürich", "+41 44 000 00 86", "en", "CHE-000.000.086")),
    ("01095", 16, _customer("Tanaka Foods", "Kanda 3-2-1", "101-0047", "Tokyo", "81 3 0000 0095", "ja", "")),
    ("01102", 40, _customer("Vendora GmbH", "Lindenallee 9", "10115", "Berlin", "+49 30 000 0102", "de", "DE 000 000 102")),
    ("01184", 31, _customer("Alder Press", "Rua do Norte 14", "1200-109", "Lisboa", "+351 210 000 141", "pt", "PT 509 442 013")),
    ("01302", 4, _customer("Kestrel Print", "12 Mill Lane", "BS1 4DJ", "Bristol", "+44 117 496 0049", "en", "GB 000 0000 49")),
    ("01355", 22, _customer("Nordkontor", "Hafenstraße 21", "20457", "Hamburg", "+49 40 000 0063", "de", "DE 000 000 063")),
]
PAYMENTS = [
    ("PAY-88120", "00932", "INV-20931", 128400, "card ending 4417"),
    ("PAY-88121", "00932", "INV-20931", 128400, "card ending 4417"),
    ("PAY-81377", "00932", "INV-19804", 128400, "card ending 4417"),
]
STOCK = [
    ("M2-GREY", "Monitor arm, grey", "mounts", 48, 8900),
    ("M2-BLACK", "Monitor arm, black", "mounts", 31, 8900),
    ("M4-WALL", "Wall mount", "mounts", 12, 14500),
    ("M5-POLE", "Pole mount", "mounts", 7, 9950),
    ("K1-FULL", "Keyboard", "input", 80, 6500),
    ("K2-COMPACT", "Keyboard, compact", "input", 64, 5900),
    ("T1-TRACK", "Trackball", "input", 22, 7400),
    ("C1-USB", "Cable, 1 m", "cables", 410, 790),
]
REPORT = "sku,name,quantity\n" + "".join(f'{sku},"{name}",{quantity}\n' for sku, name, _, quantity, _ in STOCK)
