"""BrokerPools: how many brokers, which ones go, and what is shown of them (ADR 0024)."""
