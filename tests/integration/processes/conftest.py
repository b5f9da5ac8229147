"""The servers, for the tests of how they are started."""

from tests.servers import etcd, etcd_three, s3, toxiproxy

__all__ = ["etcd", "etcd_three", "s3", "toxiproxy"]
