"""One self-contained page: every figure of a report, charts on one time axis, nothing fetched from anywhere."""
