#!/bin/sh
# Gets the shells that completion is tested in, and what draws pages of the manual: Debian's packages, which need root.
set -eu

missing=""
for program in zsh fish groff; do
    command -v "$program" >/dev/null || missing="$missing $program"
done
test -n "$missing" || exit 0
test "$(id -u)" = 0 || { echo "missing:$missing; installing them needs root" >&2; exit 1; }
apt-get --quiet update
# shellcheck disable=SC2086 - several names
DEBIAN_FRONTEND=noninteractive apt-get --quiet install --yes --no-install-recommends $missing
