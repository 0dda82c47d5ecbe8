class Cache:
    """A mapping with at most `size` entries."""

    def __init__(self, size):
        self.size = size
        self.entries = {}

    def get(self, key, default=None):
        return self.entries.get(key, default)

    def set(self, key, value):
        if len(self.entries) >= self.size:
            oldest = next(iter(self.entries))
            del self.entries[oldest]
        self.entries[key] = value

    def __len__(self):
        return len(self.entries)
