"""Records and batches as bytes: Kafka's RecordBatch v2, compression, checksums, objects of many
logs.

Every engine, shell and client may import it.
"""
