class Cart:
    """Items that a customer wants to buy."""

    def __init__(self, items=[]):
        self.items = items

    def add(self, name, price):
        self.items.append({"name": name, "price": price})

    def total(self):
        return sum(item["price"] for item in self.items)

    def discount(self, percent):
        for item in self.items:
            item["price"] = item["price"] * (100 - percent) / 100

    def copy(self):
        return Cart(self.items)
