"""When a prompt is an earlier one sent again. Pure."""

from rapidfuzz.fuzz import ratio

REMEMBERED = 4096  # characters of a prompt that a later one is compared with
_NEARLY = 90  # per cent of alike characters: a mended typing error, not another idea


def says_again(text: str, earlier: str, *, unfinished: bool) -> bool:
    """The same text is. Where the earlier attempt is `unfinished` (cut short, or never answered), nearly the same is too: people
    mend a sentence, or add one, before they send it again."""
    if text == earlier:
        return True
    if not unfinished:
        return False
    shorter, longer = sorted((text.rstrip(" …"), earlier.rstrip(" …")), key=len)
    return bool(shorter) and (longer.startswith(shorter) or ratio(text, earlier) >= _NEARLY)
