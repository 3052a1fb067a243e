#!/bin/sh
# Prints the python of a virtual environment that has the Python AgentBox (agentbox-rl 0.2.1), made once, outside the
# tree, by pip with its own configuration. Without a Python or a package index: the reason, and status 1.
here=$(dirname "$0")
. "$here/../tests/peers/_peer.sh"
python=$(newest_python 11)
[ -n "$python" ] || { echo "no Python 3.11 or newer"; exit 1; }
venv agentbox-rl-0.2.1-whole "$python" agentbox-rl==0.2.1 2>&1
