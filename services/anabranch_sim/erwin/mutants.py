"""Ways to get Erwin wrong: each breaks one rule, where one function holds it."""

from anabranch_sim.world.mutants import Mutant

MUTANTS: list[Mutant] = []
