"""The object store on S3, and what speaks its protocol (docs/decisions/0012-s3.md)."""
