#!/usr/bin/env bash
# Checks with Nsight Compute that the range of an annotated function selects its kernels and no others.
#
#   ranges.sh SCENARIO     the program `scenario` in the bundle
set -euo pipefail

# Each round runs on two threads. Each thread calls the function once, and another function that also launches.
rounds=5

ncu --nvtx --nvtx-include "scenario::nvtx::by_events/" --kernel-name-base function \
    --metrics gpu__time_duration.sum --csv "$1" nvtx/nested "$rounds" |
    awk -F '","' -v expected=$((2 * rounds)) '
        # The ranges of each kernel come before its name.
        /^"ID"/ { for (i = 1; i <= NF; i++) if ($i == "Kernel Name") name = i }
        /gpu__time_duration/ { if ($name ~ /^spin_ns/) n++; else other = $name }
        END {
            printf "kernels in the range: %d of %d\n", n, expected
            if (other != "") { print "another kernel: " other; exit 1 }
            exit n != expected
        }'
