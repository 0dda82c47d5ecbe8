"""Schedules, triggers and webhooks."""
