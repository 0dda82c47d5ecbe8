#!/bin/sh
# rotate.sh FILE KEEP: rename FILE to FILE.1, FILE.1 to FILE.2, ..., and keep KEEP of them
set -eu
file=$1
keep=$2
for old in $(ls "$file".* 2>/dev/null | sort); do
    number=${old##*.}
    if [ "$number" -le "$keep" ]; then
        mv "$old" "$file.$((number + 1))"
    else
        rm "$old"
    fi
done
mv "$file" "$file.1"
: > "$file"
