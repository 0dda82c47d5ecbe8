#!/bin/sh
# clean.sh DIRECTORY...: remove the files *.tmp of the directories
set -eu
for directory in "$@"; do
    for file in "$directory"/*.tmp; do
        [ -f "$file" ] || continue
        rm -- "$file"
    done
done
