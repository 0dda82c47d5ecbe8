"""Services that try a provider or a project before it is used."""

from drone.services.checks.project import check_project
from drone.services.checks.provider import check_provider

__all__ = ["check_project", "check_provider"]
