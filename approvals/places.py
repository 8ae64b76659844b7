"""In which workspace a page is: as `access.places` has it, for the pages of this room."""

from access.places import Place, place

__all__ = ["Place", "place"]
