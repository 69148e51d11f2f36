"""`gpu-tracker serve`: recorded and running jobs in a browser. Everything but `shell` is free of the web server."""
