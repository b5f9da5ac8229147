"""What pods say of themselves, and who is asked at all."""

from anabranch_operator.service.pod_metrics import figures

PAGE = """# HELP anabranch_member_leading 1 if it leads
anabranch_member_leading 1.0
anabranch_member_journaled 1.2e+02
anabranch_member_index 118.0
anabranch_member_brokers 3.0
anabranch_etcd_full 1.0
anabranch_log_puts_total{log="7"} 12.0
"""


def test_only_what_is_read_is_kept() -> None:
    assert figures(PAGE) == {
        "anabranch_member_leading": 1,
        "anabranch_member_journaled": 120,
        "anabranch_member_index": 118,
        "anabranch_etcd_full": 1,
    }
