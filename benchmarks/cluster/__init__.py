"""What Bolt as separate processes must cost: etcd, an S3 server, metadata members and brokers on
loopback.
"""
