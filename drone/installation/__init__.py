"""What `drone register` leaves on a machine: home, settings, policy, and the commands that inspect them."""
