"""Claims of durability, held against what replicas have confirmed to store."""

from anabranch.core.belfast.invariants.durability import DurabilityClaims
from anabranch.core.belfast.ledger.decisions import Admit, Arrange
from anabranch.core.belfast.ledger.ledger import Ledger
from anabranch.core.replication.letters import Stored

REPLICAS = ("a-0", "a-1", "a-2")


def arranged(*epochs: Arrange) -> DurabilityClaims:
    claims, ledger = DurabilityClaims(), Ledger()
    for decision in (Admit("a", REPLICAS, 1), *epochs):
        ledger.apply([decision])
        claims.arranged(ledger.members[0])
    return claims


def test_a_claim_needs_a_majority_of_the_replicas() -> None:
    claims = arranged()
    assert not claims.claim("a-0", "a", 1, 5)
    claims = arranged()
    claims.stored("a-1", Stored("a", 1, 1, 5, 1))
    assert claims.claim("a-0", "a", 1, 5)


def test_what_was_durable_once_stays_so() -> None:
    claims = arranged(Arrange(0, 2, "a-0", ("a-0", "a-1", "a-2")))
    claims.stored("a-1", Stored("a", 1, 1, 5, 1))
    assert claims.claim("a-0", "a", 1, 5)
    assert claims.claim("a-2", "a", 2, 3)


def test_the_first_claim_of_an_epoch_may_rest_on_the_replicas_before() -> None:
    claims = arranged(Arrange(0, 2, "a-0", ("a-0", "a-2")))
    claims.stored("a-1", Stored("a", 1, 1, 5, 1))
    assert claims.claim("a-0", "a", 2, 5), "epoch 1 has made it durable"
    assert not claims.claim("a-0", "a", 2, 6), "a-1 counts no more"


def test_a_shard_that_failed_must_store_again_what_it_places_anew() -> None:
    claims = arranged()
    claims.stored("a-1", Stored("a", 1, 1, 5, 1))
    assert claims.claim("a-0", "a", 1, 5)
    claims.cut_back("a", 2)
    claims.stored("a-1", Stored("a", 1, 1, 2, 1))
    assert claims.claim("a-0", "a", 1, 2)
