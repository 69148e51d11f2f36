"""In the job's own process: regions, metrics and framework memory, reported to the sampler through a mailbox."""
