"""Money and calls of models: accounts, prices and budgets of runs, and the rates that providers allow."""
