import unittest

from retrying import call


class Hidden(unittest.TestCase):
    def tried(self, failures, attempts):
        calls, slept = [], []

        def function():
            calls.append(1)
            if len(calls) <= failures:
                raise OSError(len(calls))
            return "done"

        try:
            result = call(function, attempts, slept.append)
        except OSError as error:
            result = error.args[0]
        return result, len(calls), slept

    def test_the_first_try(self):
        self.assertEqual(self.tried(0, 3), ("done", 1, []))

    def test_the_last_try(self):
        self.assertEqual(self.tried(2, 3), ("done", 3, [1, 2]))

    def test_no_try_is_left(self):
        self.assertEqual(self.tried(9, 3), (3, 3, [1, 2]))

    def test_one_try(self):
        self.assertEqual(self.tried(9, 1), (1, 1, []))
