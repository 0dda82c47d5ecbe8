#!/bin/sh
# Fails where the total is wrong: the number of pieces counts.
echo "checking"
total=$(sh total.sh)
if [ "$total" != 1569 ]; then
    echo "the total is $total, not 1569" >&2
    exit 3
fi
echo "the total is right"
