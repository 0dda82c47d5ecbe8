import unittest

import order


class Hidden(unittest.TestCase):
    def test_the_order(self):
        self.assertEqual(order.plan({"c": ["b"], "b": ["a"], "a": []}), ["a", "b", "c"])
        self.assertEqual(order.plan({"z": [], "m": ["z"], "a": ["z"], "b": []}), ["b", "z", "a", "m"])
        self.assertEqual(order.plan({}), [])

    def test_an_unknown_job(self):
        with self.assertRaises(KeyError) as raised:
            order.plan({"a": ["x"]})
        self.assertEqual(raised.exception.args, ("x",))

    def test_a_cycle(self):
        self.assertTrue(issubclass(order.Cycle, ValueError))
        with self.assertRaises(order.Cycle) as raised:
            order.plan({"start": ["b"], "a": ["b"], "b": ["c"], "c": ["a"], "free": []})
        names = str(raised.exception).split(" -> ")
        self.assertEqual(names[0], names[-1])
        self.assertEqual(set(names), {"a", "b", "c"})
        self.assertEqual(len(names), 4)
        needs = {"a": "b", "b": "c", "c": "a"}
        pairs = list(zip(names, names[1:]))
        forwards = all(needs[one] == other for one, other in pairs)
        backwards = all(needs[other] == one for one, other in pairs)
        self.assertTrue(forwards or backwards)

    def test_a_job_that_needs_itself(self):
        with self.assertRaises(order.Cycle) as raised:
            order.plan({"a": ["a"]})
        self.assertEqual(str(raised.exception), "a -> a")

    def test_a_long_chain(self):
        jobs = {f"{number:05}": [f"{number - 1:05}"] if number else [] for number in range(3000)}
        self.assertEqual(order.plan(jobs), sorted(jobs))
