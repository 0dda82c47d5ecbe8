"""Parts of the owner's policy: which orders it takes, when, and what their models may use."""

from drone.installation.owner_rules.orders import OrderRules
from drone.installation.owner_rules.times import Hours
from drone.installation.owner_rules.when import When

__all__ = ["Hours", "OrderRules", "When"]
