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
    assert not claims.claim("a-0", "a", 1, 5, whole=True)
    claims = arranged()
    claims.stored("a-1", Stored("a", 1, 1, 5, 1))
    assert claims.claim("a-0", "a", 1, 5, whole=True)


def test_what_was_durable_once_stays_so() -> None:
    claims = arranged(Arrange(shard=0, epoch=2, primary="a-0", replicas=("a-0", "a-1", "a-2")))
    claims.stored("a-1", Stored("a", 1, 1, 5, 1))
    assert claims.claim("a-0", "a", 1, 5, whole=True)
    assert claims.claim("a-2", "a", 2, 3, whole=True)


def test_the_first_claim_of_an_epoch_may_rest_on_the_replicas_before() -> None:
    claims = arranged(Arrange(shard=0, epoch=2, primary="a-0", replicas=("a-0", "a-2")))
    claims.stored("a-1", Stored("a", 1, 1, 5, 1))
    assert claims.claim("a-0", "a", 2, 5, whole=True), "epoch 1 has made it durable"
    assert not claims.claim("a-0", "a", 2, 6, whole=True), "a-1 counts no more"


def test_a_report_of_less_is_not_the_first_claim_of_an_epoch() -> None:
    """Of free will a report goes no further than the last cut; the copies that follow tell all."""
    claims = arranged(Arrange(shard=0, epoch=2, primary="a-0", replicas=("a-0", "a-2")))
    claims.stored("a-1", Stored("a", 1, 1, 5, 1))
    assert claims.claim("a-0", "a", 2, 3, whole=False)
    assert claims.claim("a-0", "a", 2, 5, whole=True)
    claims.stored("a-1", Stored("a", 1, 1, 9, 1))
    assert not claims.claim("a-0", "a", 2, 9, whole=True)


def test_a_shard_that_failed_must_store_again_what_it_places_anew() -> None:
    claims = arranged()
    claims.stored("a-1", Stored("a", 1, 1, 5, 1))
    assert claims.claim("a-0", "a", 1, 5, whole=True)
    claims.cut_back("a", 2)
    claims.stored("a-1", Stored("a", 1, 1, 2, 1))
    assert claims.claim("a-0", "a", 1, 2, whole=True)
