"""Keep a database of this program's schema, to prove that later programs open it.

python tests/data/keep_schema.py 2

Run it once for every released schema, and never again for that one: the file is the proof.
"""

from __future__ import annotations

import sys
from pathlib import Path

from malocate import Batches, Campaign, Design, Segment, SoftImpute
from malocate.store import migrations


def main(version: int) -> None:
    """Ask and tell a little in a database of that version, and leave a ticket out."""
    migrations.MIGRATIONS = migrations.MIGRATIONS[:version]
    file = Path(__file__).parent / f"schema-{version}.db"
    design = Design(
        [Segment("north", (4, 3)), Segment("south", (3, 3))],
        26,
        estimator=SoftImpute(penalty=1.0, tol=1e-2),
        schedule=Batches(size=4, first=5),
    )
    with Campaign.create(file, design, name="kept", clock=lambda: 1_000.0) as campaign:
        for turn in range(12):
            (ticket,) = campaign.ask(who="tablet", lease=60.0)
            campaign.tell(ticket, float(turn % 4))
        campaign.ask(who="tablet", lease=60.0)
    Path(f"{file}-lock").unlink(missing_ok=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
