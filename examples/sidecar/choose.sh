#!/bin/sh
# A decision and its reward, with curl. Give the Unix socket of `laconic agent agent.toml`.
set -eu
ask() {
    curl --silent --show-error --fail-with-body --unix-socket "$1" "http://localhost$2" \
        ${3:+--header "Content-Type: application/json" --data "$3"}
}
socket=${1:-edge-1.sock}

decision=$(ask "$socket" /choose '{"arms": [[0.1, 0.9, 0.3], [0.8, 0.2, 0.5]], "ids": ["tea", "coffee"]}') || {
    echo "$decision" >&2 # why it was refused
    exit 1
}
echo "$decision"
id=$(echo "$decision" | sed 's/.*"id":"\([^"]*\)".*/\1/')
ask "$socket" /observe "{\"id\": \"$id\", \"reward\": 1.0}"
echo
ask "$socket" /status
echo
