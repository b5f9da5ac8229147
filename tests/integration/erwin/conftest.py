"""etcd, where controllers of Erwin logs are elected."""

from tests.servers import etcd

__all__ = ["etcd"]
