"""Money: what runs have reserved and spent, and the budgets that bound it. See decision 16."""
