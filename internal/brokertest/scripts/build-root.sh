#!/bin/sh
# build-root.sh SUITE DIR
#
# Unpacks a minimal Debian of this suite with rabbitmq-server into the empty directory DIR. Needs root and
# debootstrap. What debootstrap mounts ends with the mount namespace that this script is run in.
set -eu

suite=$1
dir=$2

# The mirror that this machine itself uses, if it is a Debian: the default one may be out of reach.
mirror=http://deb.debian.org/debian
if [ -e /etc/debian_version ]; then
	own=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null |
		sed -n -e 's/^URIs:[[:space:]]*\([^[:space:]]*\).*/\1/p' \
			-e 's/^deb[[:space:]]\{1,\}\(\[[^]]*\][[:space:]]*\)\{0,1\}\([^[:space:]]*\).*/\2/p' |
		grep -E '/debian/?$' | head -n 1 || true)
	mirror=${own:-$mirror}
fi

# A suite that is younger than this debootstrap is set up like sid.
script=/usr/share/debootstrap/scripts/$suite
[ -e "$script" ] || script=/usr/share/debootstrap/scripts/sid

debootstrap --variant=minbase "$suite" "$dir" "$mirror" "$script"

# This machine's proxy, and its leniency toward the dates of a frozen mirror.
apt-config dump | grep '^Acquire::' | grep -v '^Acquire::IndexTargets' >"$dir/etc/apt/apt.conf.d/90machine" || true

# A minimal Debian does not know its own name, and Erlang's epmd looks it up.
echo '127.0.0.1 localhost' >"$dir/etc/hosts"

printf '#!/bin/sh\nexit 101\n' >"$dir/usr/sbin/policy-rc.d"
chmod 755 "$dir/usr/sbin/policy-rc.d"

chroot "$dir" env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 \
	apt-get install -y --no-install-recommends rabbitmq-server
chroot "$dir" apt-get clean

# Half of the tree is of no use to a broker.
rm -rf "$dir"/var/lib/apt/lists/* "$dir"/usr/share/doc/* "$dir"/usr/share/man/* "$dir"/usr/share/locale/*
