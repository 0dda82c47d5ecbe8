"""The terminal toolkit of both command lines: output, errors, exit codes, logs, doctor."""
