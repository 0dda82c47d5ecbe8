import os
import tempfile
import unittest

from files import is_inside


class Hidden(unittest.TestCase):
    def test_inside(self):
        self.assertTrue(is_inside("/srv/data", "/srv/data"))
        self.assertTrue(is_inside("/srv/data/", "/srv/data"))
        self.assertTrue(is_inside("/srv/data", "/srv/data/a/b"))
        self.assertTrue(is_inside("/srv/data", "/srv/data/a/../b"))
        self.assertTrue(is_inside("/", "/srv"))

    def test_outside(self):
        self.assertFalse(is_inside("/srv/data", "/srv/data-old/x"))
        self.assertFalse(is_inside("/srv/data", "/srv/data/../secret"))
        self.assertFalse(is_inside("/srv/data", "/srv"))

    def test_a_link_that_leads_out(self):
        with tempfile.TemporaryDirectory() as top:
            inside = os.path.join(top, "inside")
            os.mkdir(inside)
            os.symlink(top, os.path.join(inside, "link"))
            self.assertFalse(is_inside(inside, os.path.join(inside, "link", "x")))
