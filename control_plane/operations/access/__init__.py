"""Who may do what: tokens, log-ins, roles."""
