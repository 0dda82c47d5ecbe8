"""What every background part needs: a loop that keeps running, a lease on its work, its timings."""
