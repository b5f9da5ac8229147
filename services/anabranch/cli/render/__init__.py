"""How results are printed: tables, JSON, records, plots."""
