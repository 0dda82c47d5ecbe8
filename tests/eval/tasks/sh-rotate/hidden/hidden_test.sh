#!/bin/sh
set -eu
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
fail() { echo "FAILED: $1"; exit 1; }
log="$top/my app.log"

for round in 1 2 3 4 5; do
    echo "round $round" > "$log"
    sh rotate.sh "$log" 3
done
[ "$(cat "$log.1")" = "round 5" ] || fail "first: $(cat "$log.1")"
[ "$(cat "$log.2")" = "round 4" ] || fail second
[ "$(cat "$log.3")" = "round 3" ] || fail third
[ ! -e "$log.4" ] || fail "one too many"
[ -f "$log" ] && [ ! -s "$log" ] || fail "the file is not empty"

rm "$log"
sh rotate.sh "$log" 3
[ "$(cat "$log.1")" = "round 5" ] && [ ! -e "$log" ] || fail "a missing file changes something"

rm -f "$log".*
for round in 1 2 3 4 5 6 7 8 9 10 11 12 13; do
    echo "round $round" > "$log"
    sh rotate.sh "$log" 11
done
[ "$(cat "$log.1")" = "round 13" ] && [ "$(cat "$log.10")" = "round 4" ] && [ "$(cat "$log.11")" = "round 3" ] || fail "ten and more"
[ ! -e "$log.12" ] || fail "twelve"

rm -f "$log".*
echo kept > "$log.gz"
echo x > "$log"
sh rotate.sh "$log" 2
[ "$(cat "$log.gz")" = kept ] && [ "$(cat "$log.1")" = x ] || fail "other files"
echo passed
