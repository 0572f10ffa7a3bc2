"""Campaigns: durable ask and tell over the pure step in `rounds`."""

from malocate.campaign.campaign import Campaign
from malocate.campaign.status import SegmentStatus, Status
from malocate.campaign.tickets import Ticket

__all__ = ["Campaign", "SegmentStatus", "Status", "Ticket"]
