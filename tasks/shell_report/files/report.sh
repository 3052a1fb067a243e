#!/bin/sh
# Requests and bytes by status.
cut -d' ' -f9 | sort | uniq -c
