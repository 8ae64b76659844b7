"""What the back office begins with. Invented; the card endings belong to nobody."""

from typing import Any

CUSTOMERS: list[tuple[str, int, dict[str, Any]]] = [
    (
        "00417",
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
