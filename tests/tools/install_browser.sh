#!/bin/sh
# Gets a real browser and axe-core, an examiner of accessibility: Debian's Chromium, and axe from the npm registry.
# Takes a browser that is here already; else installs Debian's, which needs root.
# usage: install_browser.sh DIRECTORY
set -eu

directory=${1:?usage: install_browser.sh DIRECTORY}
mkdir -p "$directory"

if ! command -v chromium >/dev/null; then
    test "$(id -u)" = 0 || { echo "chromium is missing, and installing it needs root" >&2; exit 1; }
    apt-get --quiet update
    DEBIAN_FRONTEND=noninteractive apt-get --quiet install --yes --no-install-recommends chromium fonts-dejavu-core
fi
command -v chromium >"$directory/path"

if command -v npm >/dev/null && ! test -e "$directory/axe.min.js"; then
    package=$(cd "$directory" && npm pack --silent axe-core@4 | tail -n 1)
    tar --extract --gzip --file "$directory/$package" --directory "$directory" package/axe.min.js
    mv "$directory/package/axe.min.js" "$directory/axe.min.js"
    rm -rf "$directory/package" "${directory:?}/$package"
fi
