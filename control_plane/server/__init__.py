"""How the processes of the control plane are put together, `fleet up`, and backups."""
