"""What happens by itself: schedules and triggers make tasks, webhooks tell the world."""
