"""The `drone` command line: a module per command, put together in `main`."""
