"""Automation: schedules and triggers create tasks, webhooks send notifications."""
