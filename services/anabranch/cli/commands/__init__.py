"""The commands, one module for each or for a family; found by name when they are asked for."""
