"""The kinds of simulation: the engines, a lazy front, a consensus group alone, and operators."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from anabranch_sim.belfast.mutants import MUTANTS as BELFAST_MUTANTS
from anabranch_sim.belfast.plugin import BelfastPlugin
from anabranch_sim.bolt.compactors.mutants import COMPACTOR_MUTANTS
from anabranch_sim.bolt.engine_mutants import ENGINE_MUTANTS
from anabranch_sim.bolt.group_mutants import GROUP_MUTANTS
from anabranch_sim.bolt.mutants import MUTANTS as BOLT_MUTANTS
from anabranch_sim.bolt.plugin import BoltPlugin
from anabranch_sim.bolt.scans.mutants import SCAN_MUTANTS
from anabranch_sim.bolt.writers.mutants import WRITER_MUTANTS
from anabranch_sim.consensus.mutants import MUTANTS as CONSENSUS_MUTANTS
from anabranch_sim.consensus.plugin import ConsensusPlugin
from anabranch_sim.erwin.mutants import MUTANTS as ERWIN_MUTANTS
from anabranch_sim.erwin.plugin import ErwinPlugin
from anabranch_sim.kubernetes.mutants import MUTANTS as OPERATOR_MUTANTS
from anabranch_sim.kubernetes.plugin import OperatorPlugin
from anabranch_sim.lazy.mutants import MUTANTS as LAZY_MUTANTS
from anabranch_sim.lazy.plugin import LazyPlugin
from anabranch_sim.world.mutants import Mutant
from anabranch_sim.world.simulation import Plugin, Report, Simulation, Tell


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of simulation, with its mutants."""

    name: str
    make: Callable[[int, Tell | None], Plugin]
    verb: str
    """The verb of `make` that runs it."""
    mutants: Sequence[Mutant]

    def simulate(self, seed: int, tell: Tell | None = None) -> Report:
        return Simulation(self.make(seed, tell)).run()


KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "bolt",
            BoltPlugin.of,
            "simulate",
            [
                *BOLT_MUTANTS,
                *GROUP_MUTANTS,
                *ENGINE_MUTANTS,
                *WRITER_MUTANTS,
                *SCAN_MUTANTS,
                *COMPACTOR_MUTANTS,
            ],
        ),
        Kind("belfast", BelfastPlugin.of, "simulate-belfast", BELFAST_MUTANTS),
        Kind("erwin", ErwinPlugin.of, "simulate-erwin", ERWIN_MUTANTS),
        Kind("lazy", LazyPlugin.of, "simulate-lazy", LAZY_MUTANTS),
        Kind("consensus", ConsensusPlugin.of, "simulate-consensus", CONSENSUS_MUTANTS),
        Kind("operator", OperatorPlugin.of, "simulate-operator", OPERATOR_MUTANTS),
    )
}
