"""`make bench`: Dronefleet beside what people use today, measured in one run; the results are ratios."""
