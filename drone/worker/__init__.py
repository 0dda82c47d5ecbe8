"""The worker process of a drone: all that Celery sees, and the threads beside it."""
