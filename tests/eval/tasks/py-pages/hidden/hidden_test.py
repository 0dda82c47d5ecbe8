import unittest

import api
import store


class Hidden(unittest.TestCase):
    def setUp(self):
        store.ITEMS.clear()
        for number in (3, 1, 7, 5):
            store.add(number, f"item {number}")

    def ids(self, **arguments):
        page = api.list_items(**arguments)
        return [item["id"] for item in page["items"]], page["next"]

    def test_all(self):
        self.assertEqual(self.ids(), ([1, 3, 5, 7], None))

    def test_pages(self):
        self.assertEqual(self.ids(limit=2), ([1, 3], 3))
        self.assertEqual(self.ids(limit=2, after=3), ([5, 7], None))
        self.assertEqual(self.ids(limit=3, after=3), ([5, 7], None))

    def test_an_item_that_is_gone(self):
        del store.ITEMS[3]
        self.assertEqual(self.ids(limit=1, after=3), ([5], 5))

    def test_nothing(self):
        self.assertEqual(self.ids(after=7), ([], None))
        store.ITEMS.clear()
        self.assertEqual(self.ids(), ([], None))

    def test_zero_is_an_id(self):
        store.add(0, "zero")
        self.assertEqual(self.ids(after=0, limit=1), ([1], 1))

    def test_limits(self):
        for wrong in (0, -1, 101):
            with self.assertRaises(ValueError):
                api.list_items(limit=wrong)
        for number in range(100, 200):
            store.add(number, "x")
        self.assertEqual(len(api.list_items()["items"]), 50)
