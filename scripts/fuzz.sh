#!/usr/bin/env bash
# fuzz.sh DURATION
#
# Runs every fuzz target of this module for this long, one after another: go test fuzzes one at a time.
set -euo pipefail
cd "$(dirname "$0")/.."

duration=$1
found=0
while IFS=: read -r file target; do
	found=1
	echo "=== $target in $(dirname "$file")"
	go test -run '^$' -fuzz "^$target\$" -fuzztime "$duration" "./$(dirname "$file")"
done < <(git ls-files -co --exclude-standard '*_test.go' |
	xargs -r grep -HoE '^func Fuzz[A-Za-z0-9_]*' /dev/null | sed 's/:func /:/')
[ "$found" = 1 ] || echo "there are no fuzz targets"
