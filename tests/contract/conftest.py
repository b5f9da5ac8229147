"""The servers that contracts are held against."""

from tests.servers import etcd, etcd_three, s3

__all__ = ["etcd", "etcd_three", "s3"]
