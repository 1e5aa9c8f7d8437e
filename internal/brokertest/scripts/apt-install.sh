#!/bin/sh
# apt-install.sh PACKAGE...
#
# Installs Debian packages as root without starting the services in them: policy-rc.d keeps both sysv scripts
# and systemd units from starting. One that the machine has already is left alone.
set -eu

export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1

policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
	trap 'rm -f "$policy"' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod 755 "$policy"
fi

install() {
	apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$@"
}

# The package lists may be missing, or too old to fetch from.
install "$@" || {
	apt-get -o DPkg::Lock::Timeout=300 update
	install "$@"
}
