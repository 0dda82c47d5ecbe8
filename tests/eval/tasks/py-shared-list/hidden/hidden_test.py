import unittest

from shop.cart import Cart


class Hidden(unittest.TestCase):
    def test_two_carts(self):
        Cart().add("pen", 2)
        self.assertEqual(Cart().items, [])

    def test_a_given_list_is_unchanged(self):
        given = [{"name": "pen", "price": 10}]
        cart = Cart(given)
        cart.add("ink", 5)
        cart.discount(10)
        self.assertEqual(given, [{"name": "pen", "price": 10}])
        self.assertEqual(cart.total(), 13.5)

    def test_a_copy_is_its_own(self):
        cart = Cart()
        cart.add("pen", 10)
        copy = cart.copy()
        copy.discount(50)
        copy.add("ink", 1)
        self.assertEqual((cart.total(), copy.total()), (10, 6))
