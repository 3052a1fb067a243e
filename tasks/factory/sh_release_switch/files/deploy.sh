#!/bin/sh
# deploy.sh install ROOT NAME SOURCE | rollback ROOT | list ROOT; see SPEC.md

install() {
    root=$1
    name=$2
    source=$3
    if [ -d $root/releases/$name ]; then
        echo "$name is there already"
        exit 2
    fi
    mkdir -p $root/releases
    cp -r $source/* $root/releases/$name
    [ -L $root/current ] && ln -sfn $(readlink $root/current) $root/previous
    rm -f $root/current
    ln -s releases/$name $root/current
    echo $name >> $root/history
    if [ -f $root/releases/$name/check.sh ]; then
        sh $root/releases/$name/check.sh || exit 1
    fi
    for old in $(ls $root/releases | head -n -3); do
        rm -rf $root/releases/$old
    done
}

rollback() {
    rm $1/current
    ln -s $(readlink $1/previous) $1/current
}

list() {
    for name in $(ls $1/releases); do
        if [ "$(readlink $1/current)" = releases/$name ]; then
            echo "* $name"
        else
            echo "  $name"
        fi
    done
}

case $1 in
install) install $2 $3 $4 ;;
rollback) rollback $2 ;;
list) list $2 ;;
esac
