"""Make an environment of its own for each peer: `python benchmarks/peers.py [name …]`.

The peers need versions of NumPy and scikit-learn that differ from ours and from each other's,
so each lives in `benchmarks/.peers/<name>`. An environment whose pins did not change is kept.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENVIRONMENTS = HERE / ".peers"


@dataclass(frozen=True)
class Peer:
    """A package to compare with: what to install first, what then, and how."""

    name: str
    foundation: tuple[str, ...]
    package: str
    options: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        return ENVIRONMENTS / self.name

    @property
    def python(self) -> Path:
        windows = self.folder / "Scripts" / "python.exe"
        return windows if windows.exists() else self.folder / "bin" / "python"

    @property
    def recipe(self) -> str:
        return "\n".join([*self.foundation, self.package, *self.options, sys.version])


PEERS = {
    peer.name: peer
    for peer in (
        # its call of scikit-learn's `check_array` breaks from 1.8 on
        Peer(
            "fancyimpute",
            ("numpy==2.4.6", "scipy==1.17.1", "scikit-learn==1.7.2", "cvxpy==1.7.5"),
            "fancyimpute==0.7.0",
        ),
        # compiled here, by its own flags: -O3, this machine's instructions, link-time optimisation
        Peer(
            "cmfrec",
            (
                "numpy==2.4.6",
                "scipy==1.17.1",
                "pandas==3.1.1",
                "threadpoolctl==3.8.0",
                "cython==3.3.1",
                "findblas==0.1.26.post1",
                "setuptools<81",
                "wheel",
            ),
            "cmfrec==3.5.1.post14",
            ("--no-build-isolation",),
        ),
    )
}


def prepare(name: str) -> Path:
    """Give the Python of the peer's environment, which is made when missing or out of date."""
    peer = PEERS[name]
    stamp = peer.folder / "recipe.txt"
    if not (stamp.exists() and stamp.read_text() == peer.recipe):
        print(
            f"Installing {peer.package} into {peer.folder.relative_to(HERE.parent)} …", flush=True
        )
        venv.create(peer.folder, with_pip=True, clear=True)
        install = [str(peer.python), "-m", "pip", "install", "--quiet", "--no-input"]
        subprocess.run([*install, *peer.foundation], check=True)
        subprocess.run([*install, *peer.options, peer.package], check=True)
        stamp.write_text(peer.recipe)
    return peer.python


if __name__ == "__main__":
    for wanted in sys.argv[1:] or PEERS:
        print(wanted, prepare(wanted))
