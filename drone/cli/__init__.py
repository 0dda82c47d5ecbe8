"""The `drone` command line: one module per command, combined in `main`."""
