#!/bin/sh
# Prints what everything in prices.csv costs together.
awk -F, '{ sum += $3 } END { print sum }' prices.csv
