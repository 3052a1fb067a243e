#!/bin/sh
# TRL's own code reads the exports for it. It runs without torch as far as its data go; what sits in the trainer's file is taken
# out of it as it stands.
set -eu
here=$(dirname "$0")
. "$here/_peer.sh"
peer 11 trl-1.16.0 transformers==5.24.0 datasets==5.2.0 \
    tokenizers==0.23.3 jinja2==3.1.6 numpy==2.4.6 --no-deps trl==1.16.0
"$1" script "$here/_exports.lua" "$out" trl:rows=all trl:mode=stepwise,rows=all openai prompt-completion:tools=string \
    preference:tools=string preference:form=unpaired,tools=string pretokenized
HF_HUB_OFFLINE=1 TRANSFORMERS_VERBOSITY=error "$py" "$here/trl_rows.py" "$out"
