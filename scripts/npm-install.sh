#!/usr/bin/env bash
# npm-install.sh
#
# Installs the SQS emulators of internal/sqstest from npm, at the versions of the committed lock file, into a
# folder that git ignores. It does nothing where they are there, and only one process does it at a time: test
# binaries run it too.
set -euo pipefail
cd "$(dirname "$0")/../internal/sqstest/npm"

installed() { cmp -s package-lock.json node_modules/.installed; }

installed && exit
command -v npm >/dev/null || {
	echo "npm-install.sh: the SQS emulators need npm and node on PATH (Debian: apt-get install nodejs npm)" >&2
	exit 1
}
mkdir -p node_modules
exec 9>.install.lock
flock 9
installed && exit # by another process, meanwhile
npm ci --ignore-scripts
cp package-lock.json node_modules/.installed
