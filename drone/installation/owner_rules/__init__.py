"""Parts of the owner's policy: which orders it takes, when, what their models may use and cost, and what is kept."""

from drone.installation.owner_rules.rules import KeepRules, OrderRules, SpendRules
from drone.installation.owner_rules.times import Hours
from drone.installation.owner_rules.when import When

__all__ = ["Hours", "KeepRules", "OrderRules", "SpendRules", "When"]
