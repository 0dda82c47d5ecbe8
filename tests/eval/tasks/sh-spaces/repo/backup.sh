#!/bin/sh
# backup.sh SOURCE TARGET: copy each file of SOURCE to TARGET/NAME.bak
set -e
cd $1
for file in `ls`; do
    if [ -f $file ]; then
        cp $file $2/$file.bak
    fi
done
