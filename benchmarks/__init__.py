"""What Anabranch must cost, measured: `python -m benchmarks` (docs/explanation/benchmarks.md)."""
