"""The servers that implementations of a port stand on."""

from tests.servers import etcd, etcd_three

__all__ = ["etcd", "etcd_three"]
