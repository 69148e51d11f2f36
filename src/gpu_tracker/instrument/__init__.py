"""In the job's own process: regions, metrics and frameworks, told to the sampler through a mailbox."""
