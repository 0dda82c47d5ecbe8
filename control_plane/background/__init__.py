"""What every background part needs: a loop that goes on, a lease on its work, its timings."""
