"""Access control: tokens, logins, roles."""
