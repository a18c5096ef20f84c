"""Short digests by which a reader knows text again. Pure."""

from hashlib import blake2b


def digest(text: str) -> bytes:
    """Eight bytes: told apart are the few prompts under one place, never an attacker's."""
    return digest_of(text.encode("utf-8", "surrogatepass"))


def digest_of(data: bytes) -> bytes:
    """The same of bytes."""
    return blake2b(data, digest_size=8).digest()
