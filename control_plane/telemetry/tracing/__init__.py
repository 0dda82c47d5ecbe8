"""Traces of orders: built from what is stored when an order has ended, and sent over OTLP."""
