"""Signed-in readers for the tests of pages."""

from collections.abc import Callable

import pytest
from django.test import Client
from pytest_django import Settings

from console.access import Who
from console.models import User

Reader = Callable[[Who], Client]


@pytest.fixture(autouse=True)
def quick_hashes(settings: Settings) -> None:
    """The hashes of the product are slow on purpose; dozens of them would be most of these tests' time."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def reader() -> Reader:
    """A client signed in as that person."""

    def signed_in(who: Who) -> Client:
        client = Client(headers={"host": "localhost"})
        client.force_login(User.objects.get(actor=who.actor))
        return client

    return signed_in
