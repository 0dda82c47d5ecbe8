"""The result of `drone register` on a machine: home, settings, policy, and the commands that inspect them."""
