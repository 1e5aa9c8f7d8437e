#!/usr/bin/env bash
# each-module.sh COMMAND [ARG]...
#
# Runs a command in this module and in every module below examples/, in all of them even when it fails in one.
# A "-modfile=tools/go.mod" among the arguments is made absolute first.
set -euo pipefail
cd "$(dirname "$0")/.."

args=()
for arg in "$@"; do
	args+=("${arg/#-modfile=tools/-modfile=$PWD/tools}")
done
code=0
for mod in go.mod examples/*/go.mod; do
	[ -e "$mod" ] || continue
	(cd "$(dirname "$mod")" && "${args[@]}") || code=$?
done
exit "$code"
