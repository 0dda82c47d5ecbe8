import unittest

from lru import Cache


class Hidden(unittest.TestCase):
    def filled(self):
        cache = Cache(2)
        cache.set("a", 1)
        cache.set("b", 2)
        return cache

    def test_reading_is_a_use(self):
        cache = self.filled()
        cache.get("a")
        cache.set("c", 3)
        self.assertEqual((cache.get("a"), cache.get("b"), cache.get("c")), (1, None, 3))

    def test_setting_is_a_use_and_drops_nothing(self):
        cache = self.filled()
        cache.set("b", 9)
        self.assertEqual((len(cache), cache.get("b"), cache.get("a")), (2, 9, 1))
        cache.set("b", 9)
        cache.set("c", 3)
        self.assertEqual((cache.get("b"), cache.get("a")), (9, None))

    def test_a_miss_is_no_entry(self):
        cache = self.filled()
        self.assertEqual(cache.get("x", "none"), "none")
        self.assertEqual(len(cache), 2)

    def test_none_is_a_value(self):
        cache = self.filled()
        cache.set("a", None)
        self.assertIsNone(cache.get("a", "default"))
