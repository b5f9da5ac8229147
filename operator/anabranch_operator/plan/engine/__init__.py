"""The operator as a machine: what it knows, which plans are due, and what came of its actions."""
