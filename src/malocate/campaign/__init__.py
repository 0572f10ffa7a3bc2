"""Campaigns: durable ask and tell over the pure step in `rounds`."""

from malocate.errors import MissingDependency

try:
    import sqlalchemy  # noqa: F401  # so that a missing one is told of in a sentence
except ImportError as error:
    raise MissingDependency(
        "Campaigns need SQLAlchemy, which is not installed: pip install 'malocate[campaign]'"
    ) from error

from malocate.campaign.campaign import Campaign
from malocate.campaign.status import SegmentStatus, Status
from malocate.campaign.tickets import Ticket

__all__ = ["Campaign", "SegmentStatus", "Status", "Ticket"]
