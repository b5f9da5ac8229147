"""An Erwin log as operators meet it in simulation."""
