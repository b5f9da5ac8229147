"""CRDs and their reference page, generated from the structs."""
