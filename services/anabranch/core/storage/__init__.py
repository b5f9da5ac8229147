"""The formats and rules of stored bytes: the journal's files, its copy in the bucket, and what a
cache keeps.

Pure: the shells that open files and buckets import it.
"""
