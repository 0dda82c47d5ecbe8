"""Ending process trees and reaping what is left, in one place."""
