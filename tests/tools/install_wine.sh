#!/bin/sh
# Makes a Windows Python that runs on Linux under Wine: Python's official DLLs for Windows, as another package distributes them, the
# pure-Python half of the standard library from a Python of the same version here, and a python.exe of three lines of C.
# Needs Debian's or Ubuntu's wine64 and mingw-w64, which it installs if it may (root).
# usage: install_wine.sh DIRECTORY PYTHON, such as .venv-wine-3.11 python3.11 (a venv around it would become its own); then DIRECTORY/python behaves as python.exe.
set -eu

python=${2:?usage: install_wine.sh DIRECTORY PYTHON}
mkdir -p "${1:?usage: install_wine.sh DIRECTORY PYTHON}"
directory=$(cd "$1" && pwd)
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
number=$(echo "$version" | tr -d .)
wine=/usr/lib/wine/wine64
compiler=x86_64-w64-mingw32

if ! test -x $wine || ! command -v $compiler-gcc >/dev/null; then
    test "$(id -u)" = 0 || { echo "wine64 or mingw-w64 is missing, and installing them needs root" >&2; exit 1; }
    apt-get --quiet update
    DEBIAN_FRONTEND=noninteractive apt-get --quiet install --yes --no-install-recommends \
        wine wine64 gcc-mingw-w64-x86-64-win32
fi

pip_for_windows() {
    "$python" -m pip "$@" --quiet --no-deps --only-binary=:all: --platform win_amd64 --python-version "$version"
}

# Games are frozen with panda3d, so its wheels have the interpreter and all extension modules of the standard library.
pip_for_windows download --dest "$directory/download" panda3d==1.10.16
"$python" - "$directory" "$number" <<'PYTHON'
import glob, os, shutil, sys, sysconfig, zipfile

directory, number = sys.argv[1:]
(wheel,) = glob.glob(f"{directory}/download/panda3d-*-cp{number}-cp{number}-win_amd64.whl")
beside_the_program = (f"python{number}.dll", "vcruntime140.dll", "vcruntime140_1.dll")
os.makedirs(f"{directory}/DLLs", exist_ok=True)
with zipfile.ZipFile(wheel) as archive:
    for name in archive.namelist():
        base = os.path.basename(name)
        if name.startswith("deploy_libs/") and not base.startswith(("api-ms-win", "_wmi")):  # those are Wine's own; it has no WMI
            folder = "" if base.lower() in beside_the_program else "DLLs"
            with open(os.path.join(directory, folder, base), "wb") as file:
                file.write(archive.read(name))
left_out = ("site-packages", "lib-dynload", "__pycache__", "config-*", "*.so", "test", "tests", "idlelib", "tkinter", "lib2to3",
            "ensurepip", "_sysconfigdata*")
library = f"{directory}/Lib"
shutil.copytree(sysconfig.get_path("stdlib"), library, ignore=shutil.ignore_patterns(*left_out), dirs_exist_ok=True)
os.makedirs(f"{library}/site-packages", exist_ok=True)
PYTHON
rm -r "$directory/download"

cat >"$directory/python.c" <<C
#include <windows.h>
int wmain(int argc, wchar_t **argv) {
    int (*run)(int, wchar_t **) = (void *)GetProcAddress(LoadLibraryW(L"python$number.dll"), "Py_Main");
    return run ? run(argc, argv) : 103;
}
C
$compiler-gcc -O2 -municode -o "$directory/python.exe" "$directory/python.c"
# For wheels that suit every version: a DLL that only forwards.
{
    printf 'LIBRARY python3.dll\nEXPORTS\n'
    $compiler-objdump -p "$directory/python$number.dll" |
        sed -n "/\[Ordinal\/Name Pointer\]/,/^\$/s/^.* \(_*Py[A-Za-z0-9_]*\)\$/\1 = python$number.\1/p"
} >"$directory/python3.def"
$compiler-gcc -shared -nostdlib -o "$directory/python3.dll" "$directory/python3.def" -Wl,-e,0

# Wine cannot use a Unix file as a standard stream, so each is a pipe, unless a terminal is to be the console; it has no desktop and asks
# nothing.
cat >"$directory/python" <<SHELL
#!/bin/sh
export WINEPREFIX="$directory/prefix" WINEARCH=win64 WINEDEBUG=-all WINEDLLOVERRIDES=mscoree,mshtml=
status=\$(mktemp)
from_pipe() { cat | "\$@"; }
if test -t 0; then from=; else from=from_pipe; fi
{ { { \$from $wine "$directory/python.exe" "\$@"; echo \$? >"\$status"; } 2>&1 >&3 | cat >&2; } 3>&1; } | cat
read -r code <"\$status"
rm "\$status"
exit "\$code"
SHELL
chmod +x "$directory/python"
WINEPREFIX="$directory/prefix" WINEARCH=win64 WINEDEBUG=-all WINEDLLOVERRIDES=mscoree,mshtml= \
    $wine winecfg -v win10 </dev/null 2>&1 | cat >/dev/null

# Programs for Windows find nothing of Linux here, such as /proc: only the folder around ours, as another drive.
rm -f "$directory/prefix/dosdevices/z:"
ln -sfn "$(dirname "$directory")" "$directory/prefix/dosdevices/p:"

# A driver's library, where tests can take it from.
$compiler-gcc -O2 -shared -o "$directory/nvml.dll" "$(dirname "$0")/../platforms/nvml.c"

# What the package and its tests need; colorama and the rest only there or on an old Python.
pip_for_windows install --upgrade --target "$directory/Lib/site-packages" \
    msgspec nvidia-ml-py psutil tornado \
    pytest pytest-timeout hypothesis attrs colorama exceptiongroup iniconfig packaging pluggy pygments sortedcontainers tomli \
    typing_extensions
"$directory/python" -c 'import sys, psutil; print("Python", sys.version, "psutil", psutil.__version__)' </dev/null
