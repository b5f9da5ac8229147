"""A group's log in memory against a plain list of its entries."""

from random import Random

import pytest

from anabranch.core.consensus.letters import Entry
from anabranch.core.consensus.log import ENTRY_BYTES, GroupLog


@pytest.mark.parametrize("seed", range(60))
def test_a_log_is_a_list_of_entries_behind_a_base(seed: int) -> None:
    chance = Random(seed)
    log, entries, base, base_term = GroupLog(), list[Entry](), 0, 0
    for _ in range(120):
        what = chance.random()
        if what < 0.7:
            term = (entries[-1].term if entries else base_term) + chance.choice((0, 0, 1))
            entries.append(Entry(term, bytes(chance.randint(0, 9))))
            assert log.append(entries[-1]) == base + len(entries)
        elif what < 0.85:
            kept = chance.randint(0, len(entries))
            log.cut_back(base + kept)
            del entries[kept:]
        elif what < 0.95:
            gone = chance.randint(0, len(entries))
            log.forget(base + gone)
            base_term = entries[gone - 1].term if gone else base_term
            del entries[:gone]
            base += gone
        else:
            base, base_term = base + len(entries) + 3, base_term + 3
            log.reset(base, base_term)
            entries.clear()
        assert (log.base, log.base_term, log.last) == (base, base_term, base + len(entries))
        terms = [base_term, *(entry.term for entry in entries)]
        assert [log.term_at(index) for index in range(base, log.last + 1)] == terms
        assert log.last_term == terms[-1]
        assert log.after(base, log.last) == entries
        nth = chance.randrange(len(terms))
        earlier = [at for at, term in enumerate(terms) if term < terms[nth]]
        assert log.before_term_of(base + nth) == base + (earlier[-1] if earlier else 0)


def test_a_portion_is_as_many_entries_as_fit_and_at_least_one() -> None:
    log = GroupLog()
    for _ in range(5):
        log.append(Entry(1, bytes(100)))
    assert len(log.portion(1, 3 * (100 + ENTRY_BYTES))) == 3
    assert len(log.portion(3, 1)) == 1
    assert log.portion(6, 1_000) == []


def test_what_is_forgotten_is_not_given() -> None:
    log = GroupLog()
    for _ in range(3):
        log.append(Entry(1, b""))
    log.forget(2)
    with pytest.raises(AssertionError, match="forgotten"):
        log.after(1, 3)
    with pytest.raises(AssertionError, match="final"):
        log.cut_back(1)
