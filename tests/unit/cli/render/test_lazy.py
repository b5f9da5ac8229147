"""How the lazy front of a log is shown."""

from msgspec.structs import replace
from tests.unit.cli.render.test_erwin import status

from anabranch.cli.render.lazy import rows_of


def test_a_lost_view_is_shown_with_what_was_lost_and_when() -> None:
    rows = dict(rows_of(status()))
    assert rows["lost"] == (
        "what view 2 had acknowledged and not committed, as was found at 2023-11-14 22:13:20+00:00"
    )
    assert "lost" not in dict(rows_of(replace(status(), lost_views=())))
