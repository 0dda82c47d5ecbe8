def row(month, amount):
    return month.ljust(10) + f"${amount:,.2f}".rjust(14)
