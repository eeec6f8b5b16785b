#!/usr/bin/env bash
# Shows by Nsight Compute that a clean flush leaves nothing to write back: a kernel that only reads
# causes next to no writes to the memory after it, and many after a dirty flush.
#
#   clean.sh SCENARIO     the program of that name in the bundle
set -euo pipefail

# Percent of what the kernel reads. Were only dirty lines evicted for it, it would be 100.
clean_at_most=2
dirty_at_least=20
read_bytes=$((30 << 20))

# The program reads after a clean and after a dirty flush in turn; no other kernel is looked at, and
# neither the caches nor the clocks are touched. The first of each kind is left out: the profiler's own
# start lies just before it.
ncu --cache-control none --clock-control none --kernel-name read_f4 \
    --metrics dram__bytes_write.sum --print-units base --csv "$1" cold/reads |
    awk -F '","' -v clean="$clean_at_most" -v dirty="$dirty_at_least" -v bytes="$read_bytes" '
        $5 ~ /^read_f4/ && /dram__bytes_write/ {
            value = $NF
            gsub(/[",]/, "", value)
            kind = n++ % 2 ? "dirty" : "clean"
            if (n <= 2) next
            share = 100 * value / bytes
            if (!(kind in least) || share < least[kind]) least[kind] = share
            if (!(kind in most) || share > most[kind]) most[kind] = share
        }
        END {
            if (n < 4) { print "no figures from ncu"; exit 1 }
            for (kind in most)
                printf "writes to memory, by a kernel that reads 30 MiB after a %s flush: %.2f to %.2f %% of that\n",
                    kind, least[kind], most[kind]
            if (most["clean"] > clean) { print "more than " clean " % after a clean flush"; exit 1 }
            if (least["dirty"] < dirty) { print "less than " dirty " % after a dirty flush"; exit 1 }
        }'
