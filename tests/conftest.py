"""What every test may use: the hypothesis profile and the seed of the random tests."""

import os
from typing import cast

import pytest
from hypothesis import settings

settings.register_profile(
    "capra",
    derandomize=True,
    print_blob=True,
    deadline=None,
    max_examples=100,
    database=None,
)
settings.load_profile("capra")


def _seeds() -> list[int]:
    chosen = os.environ.get("CAPRA_SEED")
    return [int(chosen)] if chosen else [0, 1, 2]


@pytest.fixture(params=_seeds(), ids=lambda seed: f"seed{seed}")
def seed(request: pytest.FixtureRequest) -> int:
    """Seed of a random test, shown in its name: 0, 1 and 2, or CAPRA_SEED where that is set."""
    return cast(int, request.param)
