SELECT customer.name, COUNT("order".id) AS orders, SUM(item.cents) AS cents
FROM customer
JOIN "order" ON "order".customer_id = customer.id
JOIN item ON item.order_id = "order".id
WHERE "order".paid = 1
GROUP BY customer.id
ORDER BY cents DESC, customer.name
