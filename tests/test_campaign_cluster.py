"""A campaign whose planner works on a cluster decides as any other, whoever dies meanwhile."""

from __future__ import annotations

import logging

import pandas as pd
import pytest
from clusters import Killer, cluster, compute_on
from crowd import answer, clock, create, decisions, undisturbed
from typer.testing import CliRunner

from malocate import Campaign, Compute, Synthetic
from malocate.cli import app


@pytest.fixture(scope="module")
def dask_cluster():
    with cluster() as made:
        yield made


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> list[str]:
    return undisturbed(tmp_path_factory.mktemp("undisturbed"))


def run_to_the_end(campaign: Campaign) -> None:
    """Ask and tell until nothing more is to be asked; planning happens where it is asked."""
    while campaign.status().state != "done":
        for ticket in campaign.ask(20, who="tablet"):
            campaign.tell(ticket, answer(ticket.segment, ticket.draw))


@pytest.mark.slow
def test_a_campaign_on_a_cluster_decides_as_one(dask_cluster, expected, tmp_path):
    url = f"sqlite:///{tmp_path}/crowd.db"
    create(url)
    with Campaign.open(url, clock=clock, compute=compute_on(dask_cluster)) as campaign:
        run_to_the_end(campaign)
        assert campaign.verify().ok
    assert decisions(url) == expected


@pytest.mark.slow
def test_workers_that_die_are_not_noticed(expected, tmp_path):
    url = f"sqlite:///{tmp_path}/crowd.db"
    create(url)
    with (
        cluster() as made,
        Killer(made, within=2.0, deaths=3) as killer,
        Campaign.open(url, clock=clock, compute=compute_on(made)) as campaign,
    ):
        run_to_the_end(campaign)
    assert decisions(url) == expected
    assert killer.killed >= 1


def run_without_its_cluster(url: str, caplog, monkeypatch) -> None:
    """Run a campaign whose cluster is away, keeping what is told of it."""
    monkeypatch.setattr("malocate.compute.cluster.PATIENCE", 0.2)
    create(url)
    away = Compute(dask="tcp://127.0.0.1:1")
    with (
        caplog.at_level(logging.WARNING, "malocate"),
        Campaign.open(url, clock=clock, compute=away) as campaign,
    ):
        run_to_the_end(campaign)


def test_planning_goes_on_when_the_cluster_is_away(expected, tmp_path, caplog, monkeypatch):
    url = f"sqlite:///{tmp_path}/crowd.db"
    run_without_its_cluster(url, caplog, monkeypatch)
    assert decisions(url) == expected
    assert "No Dask scheduler answers at tcp://127.0.0.1:1" in caplog.text
    assert caplog.text.count("Planning goes on here") == 1  # it is not waited for each round


def test_a_cluster_that_was_away_is_tried_again_after_a_while(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr("malocate.campaign.planner.WITHOUT_CLUSTER", 0.0)
    run_without_its_cluster(f"sqlite:///{tmp_path}/crowd.db", caplog, monkeypatch)
    assert caplog.text.count("Planning goes on here") > 1


def test_the_worker_command_plans_on_a_cluster(dask_cluster, tmp_path):
    url = f"sqlite:///{tmp_path}/crowd.db"
    create(url)
    where = ["--dask", dask_cluster.scheduler_address]
    done = CliRunner().invoke(app, ["worker", url, "--once", "--nice", "0", *where])
    assert done.exit_code == 0, done.output
    assert "60 questions of round 1 wait to be asked" in done.output
    verified = CliRunner().invoke(app, ["verify", url, *where])
    assert verified.exit_code == 0, verified.output


def test_the_complete_command_fits_on_a_cluster(dask_cluster, tmp_path):
    answers = Synthetic.low_rank((9, 7), rank=1, rng=0).observe(200, rng=1)
    columns = {"row": answers.rows, "column": answers.cols, "value": answers.values}
    pd.DataFrame(columns).to_csv(tmp_path / "ratings.csv", index=False)
    for name, where in (("here", []), ("there", ["--dask", dask_cluster.scheduler_address])):
        out = ["-o", str(tmp_path / f"{name}.csv")]
        done = CliRunner().invoke(app, ["complete", str(tmp_path / "ratings.csv"), *out, *where])
        assert done.exit_code == 0, done.output
    assert (tmp_path / "here.csv").read_bytes() == (tmp_path / "there.csv").read_bytes()


def test_the_worker_command_refuses_a_cluster_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.setattr("malocate.compute.cluster.PATIENCE", 0.2)
    url = f"sqlite:///{tmp_path}/crowd.db"
    create(url)
    done = CliRunner().invoke(
        app, ["worker", url, "--once", "--nice", "0", "--dask", "tcp://127.0.0.1:1"]
    )
    assert done.exit_code != 0
    assert "No Dask scheduler answers at tcp://127.0.0.1:1" in done.output
