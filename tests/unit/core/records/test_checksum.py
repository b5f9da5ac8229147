"""CRC32C by the polynomial's definition, in any buffer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.machine import Buffer
from anabranch.core.records.checksum import crc32c

_POLYNOMIAL = 0x82F63B78


def slowly(content: bytes) -> int:
    rest = 0xFFFFFFFF
    for byte in content:
        rest ^= byte
        for _ in range(8):
            rest = rest >> 1 ^ (_POLYNOMIAL if rest & 1 else 0)
    return rest ^ 0xFFFFFFFF


def test_the_check_value_of_the_standard() -> None:
    assert crc32c(b"123456789") == 0xE3069283


@given(st.binary(max_size=300), st.integers(0, 20))
def test_a_part_of_any_buffer_has_the_sum_of_its_bytes(content: bytes, start: int) -> None:
    expected = slowly(content[start:])
    parts: list[Buffer] = [content[start:], bytearray(content)[start:], memoryview(content)[start:]]
    assert [crc32c(part) for part in parts] == [expected] * 3


@pytest.mark.parametrize("at", [0, 7, 99])
def test_every_flipped_bit_shows(at: int) -> None:
    content = bytes(range(100))
    found = {crc32c(content)}
    for bit in range(8):
        other = bytearray(content)
        other[at] ^= 1 << bit
        found.add(crc32c(other))
    assert len(found) == 9
