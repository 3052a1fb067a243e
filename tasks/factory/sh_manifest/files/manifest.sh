#!/bin/sh
# manifest.sh create FOLDER | check FOLDER MANIFEST | compare OLD NEW; see SPEC.md
exit 0
