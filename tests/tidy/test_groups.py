"""Whether tests that belong together run on one worker."""

import pytest


@pytest.mark.xdist_group("groups")
def test_workers_know_the_groups_of_tests(request: pytest.FixtureRequest) -> None:
    if not hasattr(request.config, "workerinput"):
        pytest.skip("tests of one process have no workers")
    # pytest-xdist 3.8 marks what belongs together in a test's name. Under pytest 9.2 it marked
    # nothing, and said nothing: each worker started the API server of each module.
    assert request.node.nodeid.endswith("@groups")
