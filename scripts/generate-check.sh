#!/usr/bin/env bash
# generate-check.sh
#
# Fails when "make generate" changes, adds or removes a file. It compares the working tree before with the
# one after, both taken with an index of their own, so that uncommitted work is neither touched nor reported.
set -euo pipefail
cd "$(dirname "$0")/.."

index=$(mktemp -d)
trap 'rm -rf "$index"' EXIT

snapshot() {
	GIT_INDEX_FILE=$index/index git add --all .
	GIT_INDEX_FILE=$index/index git write-tree
}

before=$(snapshot)
make --no-print-directory generate
after=$(snapshot)
if ! git diff --exit-code --stat -p "$before" "$after"; then
	echo "generate-check: make generate changes what is above: run it and keep the result" >&2
	exit 1
fi
