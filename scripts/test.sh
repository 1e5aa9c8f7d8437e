#!/usr/bin/env bash
# test.sh [FLAG]...
#
# Runs go test with these flags in this module and in every module below examples/, which use it the way an
# application would. All are run, even when one fails.
#
# With RERUN_FAILED=1 a test that fails is run once more, unless more than a few do, and the end of the log lists it. Tests
# with real brokers share their machine with others on CI: a failure that does not come again is to be looked into, and is
# no reason to run everything anew.
set -euo pipefail
cd "$(dirname "$0")/.."

tests=(go test "$@" ./...)
if [ "${RERUN_FAILED:-}" = 1 ]; then
	tests=(go tool -modfile="$PWD/tools/go.mod" gotestsum --format=pkgname-and-test-fails --rerun-fails=1 --rerun-fails-max-failures=5 --packages=./... -- "$@")
fi
code=0
"${tests[@]}" || code=$?
for mod in examples/*/go.mod; do
	[ -e "$mod" ] || continue
	(cd "$(dirname "$mod")" && "${tests[@]}") || code=$?
done
exit "$code"
