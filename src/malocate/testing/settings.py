"""What holds of the settings of any estimator and any strategy."""

from __future__ import annotations

import copy
import dataclasses
import pickle


class SettingsChecks:
    """Checks of a frozen value; a class that derives from it says what it makes."""

    def make(self) -> object:
        """Give the value to check."""
        raise NotImplementedError

    def test_settings_are_fixed_when_it_is_made(self) -> None:
        made = self.make()
        for name in _settings(made):
            try:
                setattr(made, name, getattr(made, name))
            except AttributeError:
                continue
            raise AssertionError(f"the setting {name!r} can be changed")

    def test_equal_settings_are_equal_and_hash_alike(self) -> None:
        made = self.make()
        for twin in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
            assert twin == made
            assert hash(twin) == hash(made)
            assert repr(twin) == repr(made)

    def test_it_reads_as_its_settings(self) -> None:
        made = self.make()
        text = repr(made)
        assert text.startswith(type(made).__name__)
        assert all(name in text for name in _settings(made))


def _settings(made: object) -> list[str]:
    if dataclasses.is_dataclass(made):
        return [each.name for each in dataclasses.fields(made)]
    return list(vars(made))
