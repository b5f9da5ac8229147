"""Object stores behind `ports.ObjectStore`: a folder, memory, S3; a disk cache; quarantine."""
