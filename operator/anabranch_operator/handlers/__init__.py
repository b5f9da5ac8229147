"""What the operator hears, and the process it is: watches by kopf, evictions, probes."""
