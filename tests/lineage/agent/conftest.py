"""A model for tests: a real server on this machine."""

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from tests.lineage.agent.fakemodel import FakeModel, fake_model


@pytest.fixture
def model(settings: Settings) -> Iterator[FakeModel]:
    """A server of the Messages API, configured as the console's model."""
    with fake_model() as running:
        settings.ANTHROPIC_BASE_URL = running.url
        settings.ANTHROPIC_API_KEY = "test-key"
        settings.MODELS = ["fake-large", "fake-small"]
        settings.MODEL_PRICES = {"fake-*": {"input": 3.0, "output": 15.0}}
        yield running
