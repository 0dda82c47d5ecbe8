def total(amounts):
    amount = sum(amounts)
    if amount < 0:
        return "Total: -$" + f"{-amount:,.2f}"
    return "Total: $" + f"{amount:,.2f}"
