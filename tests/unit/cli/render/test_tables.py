"""Tables show every name whole, however narrow the terminal is."""

from anabranch.cli.render.tables import rows_of_text

NAME = "a-name-that-is-longer-than-the-terminal-is-wide"


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert list(rows_of_text(["NAME", ">TAIL"], [("a", "1"), ("longer", "200")])) == [
        "NAME    TAIL",
        "a          1",
        "longer   200",
    ]
    assert list(rows_of_text(["", ""], [("name", "a")])) == ["name  a"]
    assert list(rows_of_text(["NAME"], [])) == ["NAME"]


def test_wide_characters_take_two_columns() -> None:
    assert list(rows_of_text(["A", "B"], [("日本", "x"), ("e\u0301", "y")])) == [
        "A     B",
        "日本  x",
        "e\u0301     y",
    ]


def test_a_table_that_is_wider_than_the_terminal_becomes_blocks() -> None:
    rows = [(NAME, "1", ""), ("b", "2", "c")]
    assert list(rows_of_text(["NAME", ">TAIL", "WHY"], rows, width=30)) == [
        f"NAME  {NAME}",
        "TAIL  1",
        "",
        "NAME  b",
        "TAIL  2",
        "WHY   c",
    ]


def test_only_the_heads_of_a_table_are_emphasized() -> None:
    shown = list(rows_of_text(["A"], [("a",)], head_style=str.lower))
    assert shown == ["a", "a"]
    assert list(rows_of_text([""], [("B",)], head_style=str.lower)) == ["B"]
