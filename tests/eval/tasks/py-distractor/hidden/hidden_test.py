import os
import unittest

import app
from config import settings


class Hidden(unittest.TestCase):
    def setUp(self):
        for name in ("APP_TIMEOUT", "APP_DEBUG"):
            os.environ.pop(name, None)

    def test_the_timeout(self):
        self.assertEqual(app.timeout(), 30)
        for text, number in (("0", 0), ("5", 5), ("", 30)):
            os.environ["APP_TIMEOUT"] = text
            self.assertEqual(app.timeout(), number)

    def test_the_switch(self):
        self.assertFalse(app.debugging())
        for text, on in (("false", False), ("0", False), ("", False), ("1", True), ("true", True), ("True", True), ("FALSE", False)):
            os.environ["APP_DEBUG"] = text
            self.assertEqual(app.debugging(), on, text)

    def test_the_old_module_is_as_it_was(self):
        os.environ["APP_TIMEOUT"], os.environ["APP_DEBUG"] = "0", "false"
        self.assertEqual((settings.load().timeout, settings.load().debug), (30, True))
