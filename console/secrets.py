"""Secrets that are shown once: made here, stored only as hashes (S1, S2)."""

import hashlib
import secrets

SECRET_BYTES = 32


def new_secret() -> str:
    """43 characters that are safe in a header and a URL."""
    return secrets.token_urlsafe(SECRET_BYTES)


def hashed(secret: str) -> str:
    """The hex SHA-256 of a secret. Its 256 random bits need no salt and no slow hash."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
