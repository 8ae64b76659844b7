"""What changed between two versions of a text, and where: a row of a table by its name, any other line by its number."""

from artifacts.models import Artifact, Payload
from artifacts.views import Change, changes


def version(text: str) -> Artifact:
    return Artifact(payload=Payload(rendition=text))


def test_a_row_is_called_by_what_it_begins_with_and_shows_only_the_cells_that_differ():
    before = version("| What | Sum |\n|---|---|\n| **Paid after refund** | €1,489.00 |\n| VAT | none |\n")
    after = version("| What | Sum |\n|---|---|\n| **Paid after refund** | €1,284.00 |\n| VAT, 19 % | €205.00 |\nThank you.\n")
    assert list(changes(before, after)) == [
        Change(3, "€1,489.00", "€1,284.00", "Paid after refund"),
        Change(4, "VAT, none", "VAT, 19 %, €205.00"),
        Change(5, "", "Thank you."),
    ]
