"""Keys and certificates: made, read, and kept in Secrets. The only room that private keys enter."""
