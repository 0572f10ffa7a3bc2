"""What can go wrong, and how to catch it.

Every error derives from `MalocateError` and from the built-in error that one would expect,
so both ``except MalocateError`` and ``except ValueError`` work::

    MalocateError
    ├── InvalidInput    (also a ValueError)   a value breaks a rule: an index out of shape, a NaN
    │   └── TooLarge                          a dense matrix above the size limit was asked for
    ├── InvalidType     (also a TypeError)    a wrong kind of thing: strings where numbers belong
    ├── NotFound        (also a LookupError)  no such campaign, ticket, segment or person
    ├── Conflict        (also a RuntimeError) it contradicts what is recorded: another answer
    ├── StoreError      (also a RuntimeError) a database cannot be used: full, damaged, not ours
    ├── ComputeError    (also a RuntimeError) a cluster cannot be used: away, or its workers die
    └── MissingDependency (an ImportError)    an optional package is not installed

Each message names the thing, the rule, the value met and the way out.
"""

from __future__ import annotations

__all__ = [
    "ComputeError",
    "Conflict",
    "InvalidInput",
    "InvalidType",
    "MalocateError",
    "MissingDependency",
    "NotFound",
    "StoreError",
    "TooLarge",
]


class MalocateError(Exception):
    """Any error that malocate raises on purpose; its text is one sentence for people.

    >>> from malocate import MalocateError, Observations
    >>> try:
    ...     Observations([0, 5], [0, 0], [1.0, 2.0], shape=(3, 3))
    ... except MalocateError as error:
    ...     print("refused")
    refused
    """


class InvalidInput(MalocateError, ValueError):
    """A value that breaks a rule, such as an index outside the shape.

    >>> from malocate import InvalidInput
    >>> issubclass(InvalidInput, ValueError)
    True
    """


class InvalidType(MalocateError, TypeError):
    """A wrong kind of thing, such as text where numbers belong.

    >>> from malocate import InvalidType
    >>> issubclass(InvalidType, TypeError)
    True
    """


class MissingDependency(MalocateError, ImportError):
    """An optional package that is not installed; the message names the extra that brings it.

    >>> from malocate import MissingDependency
    >>> issubclass(MissingDependency, ImportError)
    True
    """


class TooLarge(InvalidInput):
    """A dense matrix above the size limit; ask for entries or blocks, or force it.

    >>> from malocate import TooLarge
    >>> issubclass(TooLarge, ValueError)
    True
    """


class NotFound(MalocateError, LookupError):
    """Something that is not there: a campaign, a ticket, a segment, a person.

    >>> from malocate import NotFound
    >>> issubclass(NotFound, LookupError)
    True
    """


class Conflict(MalocateError, RuntimeError):
    """Something that contradicts what is recorded, such as another answer to the same ticket.

    >>> from malocate import Conflict
    >>> issubclass(Conflict, RuntimeError)
    True
    """


class StoreError(MalocateError, RuntimeError):
    """A database that cannot be used: it is full, damaged, locked, or another program's.

    >>> from malocate import StoreError
    >>> issubclass(StoreError, RuntimeError)
    True
    """


class ComputeError(MalocateError, RuntimeError):
    """A cluster that cannot be used: no scheduler answers, or its workers die again and again.

    >>> from malocate import ComputeError
    >>> issubclass(ComputeError, RuntimeError)
    True
    """
