#!/bin/sh
set -eu
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
here=$(pwd)
fail() { echo "FAILED: $1"; exit 1; }

mkdir "$top/my source" "$top/my target" "$top/my source/inner dir"
echo one > "$top/my source/plain"
echo two > "$top/my source/two words.txt"
echo three > "$top/my source/-dash"
echo four > "$top/my source/star*"
sh "$here/backup.sh" "$top/my source" "$top/my target"
[ "$(cat "$top/my target/plain.bak")" = one ] || fail plain
[ "$(cat "$top/my target/two words.txt.bak")" = two ] || fail spaces
[ "$(cat "$top/my target/-dash.bak")" = three ] || fail dash
[ "$(cat "$top/my target/star*.bak")" = four ] || fail star
[ "$(ls "$top/my target" | wc -l)" -eq 4 ] || fail "too many files"

mkdir "$top/empty" "$top/none"
sh "$here/backup.sh" "$top/empty" "$top/none"
[ -z "$(ls -A "$top/none")" ] || fail empty

mkdir "$top/relative" "$top/relative/a" "$top/relative/b"
echo five > "$top/relative/a/x"
cd "$top/relative"
sh "$here/backup.sh" a "$top/relative/b"
[ "$(cat b/x.bak)" = five ] || fail relative
echo passed
