"""Numbers in the query of an address."""

from django.http import HttpRequest

from console.errors import Invalid

DIGITS = 18  # of a number of a row; an entry's has fewer


def number_in(request: HttpRequest, name: str) -> int | None:
    """The number under that name, none where it is missing. Refusal: `invalid`."""
    said = request.GET.get(name, "")
    if not said:
        return None
    if not (said.isascii() and said.isdecimal() and len(said) <= DIGITS):
        raise Invalid(name, f"{name} is a whole number.")
    return int(said)


def numbers_in(request: HttpRequest, name: str, most: int) -> list[int]:
    """Numbers parted by commas, at most `most` of them."""
    said = request.GET.get(name, "")
    parts = [part for part in said.split(",") if part]
    if len(parts) > most or not all(p.isascii() and p.isdecimal() and len(p) <= DIGITS for p in parts):
        raise Invalid(name, f"{name} is a list of at most {most} whole numbers, parted by commas.")
    return [int(part) for part in parts]
