"""One causal stack that reads the source and goes on with the target (Radford et al. 2018)."""
