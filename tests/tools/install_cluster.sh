#!/bin/sh
# Installs what the tests of tests/clusters run: Debian's Slurm, Open MPI, MPICH and runc. Needs root; starts nothing.
set -eu
test "$(id -u)" = 0 || { echo "root is needed" >&2; exit 1; }
export DEBIAN_FRONTEND=noninteractive
apt-get update --quiet
apt-get install --quiet --yes --no-install-recommends \
    slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge libpmix-dev openmpi-bin python3-mpi4py mpich runc python3-venv
