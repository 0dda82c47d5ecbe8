#!/bin/sh
set -eu
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
fail() { echo "FAILED: $1"; exit 1; }
fill() { rm -rf "$top/a b" "$top/c"; mkdir "$top/a b" "$top/c"; touch "$top/a b/x 1.tmp" "$top/a b/y.bak" "$top/c/z.tmp"; }

fill
out=$(sh clean.sh -n "$top/a b" "$top/c")
[ "$out" = "$top/a b/x 1.tmp
$top/c/z.tmp" ] || fail "dry run: $out"
[ -f "$top/a b/x 1.tmp" ] && [ -f "$top/c/z.tmp" ] || fail "the dry run removed files"

sh clean.sh "$top/a b" "$top/c"
[ ! -e "$top/a b/x 1.tmp" ] && [ ! -e "$top/c/z.tmp" ] && [ -f "$top/a b/y.bak" ] || fail "plain"

fill
out=$(sh clean.sh -e bak -n "$top/a b")
[ "$out" = "$top/a b/y.bak" ] || fail "both: $out"
out=$(sh clean.sh -n -e bak "$top/a b")
[ "$out" = "$top/a b/y.bak" ] || fail "both, the other way: $out"
sh clean.sh -e bak "$top/a b" "$top/c"
[ ! -e "$top/a b/y.bak" ] && [ -f "$top/a b/x 1.tmp" ] || fail "extension"

fill
for wrong in "" "-n" "-x $top/c" "-e"; do
    status=0
    # shellcheck disable=SC2086
    sh clean.sh $wrong > "$top/out" 2> "$top/err" || status=$?
    [ "$status" -eq 2 ] || fail "status $status for '$wrong'"
    [ -s "$top/err" ] && [ ! -s "$top/out" ] || fail "usage for '$wrong'"
done
[ -f "$top/c/z.tmp" ] || fail "removed by a wrong call"
echo passed
