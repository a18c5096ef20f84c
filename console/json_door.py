"""The one door for JSON whose strings may be anything: frames of the socket and bodies with text (D6).

The fast reader refuses an unpaired surrogate, which is legal JSON. A slower one reads it then, so that the applier can say
`invalid_text` with the edit that holds it; answers never repeat it.
"""

import json

import msgspec

from console.errors import DomainError, Invalid


def read_json[T](data: bytes | str, shape: type[T]) -> T:
    """The value in that shape. Refusals: `not_json` (400), `invalid` (422) with the place as `field`."""
    try:
        return msgspec.json.decode(data, type=shape)
    except msgspec.ValidationError as error:
        raise _wrong_shape(error) from error
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    try:
        return msgspec.convert(json.loads(data), shape)
    except msgspec.ValidationError as error:
        raise _wrong_shape(error) from error
    except (ValueError, RecursionError) as error:
        raise DomainError("not_json", "The body is not JSON. Send a JSON object in UTF-8.", status=400) from error


def _wrong_shape(error: msgspec.ValidationError) -> Invalid:
    said, _, place = str(error).partition(" - at ")
    return Invalid(place.strip("`").removeprefix("$").lstrip(".") or "body", f"{said}.")
