"""An object cut into the parts of an upload."""

from hypothesis import given
from hypothesis import strategies as st

from anabranch.shell.objects.s3.upload import cut


@given(st.lists(st.binary(max_size=40), max_size=12), st.integers(1, 50))
def test_pieces_are_the_same_bytes_each_of_the_size_but_the_last(
    parts: list[bytes], size: int
) -> None:
    pieces = [b"".join(piece) for piece in cut(parts, size)]
    assert b"".join(pieces) == b"".join(parts)
    assert all(len(piece) == size for piece in pieces[:-1])
    assert all(0 < len(piece) <= size for piece in pieces[-1:])
