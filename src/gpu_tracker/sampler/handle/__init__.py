"""The tracker's side of the sampler: start it, talk to it, recover what it wrote."""
