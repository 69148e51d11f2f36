#!/bin/sh
# Fetches rocm-smi and gputop, with all they need to run, into a directory of their own: DIRECTORY/root.
# Takes them from this machine's own Debian sources, of the release that has both; installs nothing, needs no root.
# usage: fetch_real_tools.sh DIRECTORY
set -eu

release=trixie
packages="rocm-smi intel-gpu-tools base-files dash coreutils grep"
directory=${1:?usage: fetch_real_tools.sh DIRECTORY}

mkdir -p "$directory/apt/lists/partial" "$directory/apt/cache/archives/partial" "$directory/apt/log" "$directory/root"
directory=$(cd "$directory" && pwd)
test ! -e "$directory/complete" || exit 0
command -v apt-get dpkg-deb >/dev/null || { echo "apt-get and dpkg-deb are needed" >&2; exit 1; }

# The first source of this machine that has a main part, signed by the distribution's keys.
keys=/usr/share/keyrings/debian-archive-keyring.gpg
test -e "$keys" && signed="[signed-by=$keys] " || signed=
apt-get indextargets --format '$(REPO_URI) $(COMPONENT)' 'Identifier: Packages' |
    sed -n "s|^\(.*\) main\$|deb $signed\1 $release main|p" | head -n 1 >"$directory/apt/sources.list"

apt() {
    apt-get --quiet \
        -o Dir::Etc::SourceList="$directory/apt/sources.list" -o Dir::Etc::SourceParts=- \
        -o Dir::State::Lists="$directory/apt/lists" -o Dir::State::Status=/dev/null \
        -o Dir::Cache="$directory/apt/cache" -o Dir::Log="$directory/apt/log" \
        -o APT::Sandbox::User="$(id -un)" -o Debug::NoLocking=1 "$@"
}

apt update
# As if nothing were installed: the whole closure, down to the C library, so that any machine can run it.
# shellcheck disable=SC2086
apt install --yes --no-install-recommends --download-only $packages
for package in "$directory"/apt/cache/archives/*.deb; do
    dpkg-deb --extract "$package" "$directory/root"
done
touch "$directory/complete"
