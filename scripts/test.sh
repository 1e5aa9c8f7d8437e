#!/usr/bin/env bash
# test.sh [FLAG]...
#
# Runs go test with these flags in this module and in every module below examples/, which use it the way an
# application would. All are run, even when one fails.
set -euo pipefail
cd "$(dirname "$0")/.."

code=0
go test "$@" ./... || code=$?
for mod in examples/*/go.mod; do
	[ -e "$mod" ] || continue
	(cd "$(dirname "$mod")" && go test "$@" ./...) || code=$?
done
exit "$code"
