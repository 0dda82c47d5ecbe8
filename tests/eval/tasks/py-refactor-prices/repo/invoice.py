def lines(items):
    result = []
    for name, amount in items:
        sign = "-" if amount < 0 else ""
        result.append(f"{name}: {sign}${abs(amount):,.2f}")
    return result
