"""The worker process of a drone: the part that Celery sees, and the threads beside it."""
