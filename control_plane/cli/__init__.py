"""The `fleet` command line: a file per group of commands, each a thin layer over the HTTP client."""
