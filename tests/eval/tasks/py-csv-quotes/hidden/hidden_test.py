import unittest

from rows import split_line


class Hidden(unittest.TestCase):
    def test_plain(self):
        self.assertEqual(split_line("a,b,,d\n"), ["a", "b", "", "d"])

    def test_comma_inside_quotes(self):
        self.assertEqual(split_line('1,"Doe, Jane",x'), ["1", "Doe, Jane", "x"])

    def test_doubled_quotes(self):
        self.assertEqual(split_line('"say ""hi""",2'), ['say "hi"', "2"])
        self.assertEqual(split_line('"""",""'), ['"', ""])

    def test_spaces_stay(self):
        self.assertEqual(split_line(" a , b "), [" a ", " b "])
