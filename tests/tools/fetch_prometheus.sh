#!/bin/sh
# Fetches Prometheus and promtool into a directory of their own: DIRECTORY/usr/bin.
# Takes them from this machine's own Debian sources; installs nothing, needs no root.
# usage: fetch_prometheus.sh DIRECTORY
set -eu

directory=${1:?usage: fetch_prometheus.sh DIRECTORY}

mkdir -p "$directory/apt/lists/partial" "$directory/apt/cache/archives/partial"
directory=$(cd "$directory" && pwd)
test ! -e "$directory/complete" || exit 0
command -v apt-get dpkg-deb >/dev/null || { echo "apt-get and dpkg-deb are needed" >&2; exit 1; }

apt() {
    apt-get --quiet \
        -o Dir::State::Lists="$directory/apt/lists" -o Dir::Cache="$directory/apt/cache" \
        -o APT::Sandbox::User="$(id -un)" -o Debug::NoLocking=1 "$@"
}

apt update
cd "$directory"
apt download prometheus  # both programs need nothing but the C library
dpkg-deb --extract prometheus_*.deb "$directory"
touch complete
