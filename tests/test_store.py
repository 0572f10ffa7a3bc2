"""The contract of the store on both databases, and stores that must fail it."""

from __future__ import annotations

import pytest

from malocate.testing import StoreChecks


class TestStore(StoreChecks):
    @pytest.fixture(autouse=True)
    def empty(self, url):
        self.url = url
