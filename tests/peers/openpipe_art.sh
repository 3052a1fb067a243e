#!/bin/sh
# ART's own models read both ART exports, and openai's types every response that was stored: of real rollouts in real
# sandboxes, and of hand-made ones with token ids. The exchanges need openpipe-art 0.5.20, which needs Python 3.12.
set -eu
here=$(dirname "$0")
. "$here/_peer.sh"
minor=12 version=0.5.23 more="numpy==2.5.5 polars==2.1.0 orjson==3.13.0 requests==2.34.2 tblib==3.2.2 aiohttp==3.14.5"
[ -n "$(newest_python 12)" ] || minor=11 version=0.5.18 more=
# shellcheck disable=SC2086
peer $minor "openpipe-art-$version" pydantic==2.14.4 openai==2.54.0 anthropic==2.14.0 $more --no-deps "openpipe-art==$version"
"$1" script "$here/openpipe_art.lua" "$out"
"$py" "$here/openpipe_art.py" "$out"
