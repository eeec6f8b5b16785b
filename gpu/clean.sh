#!/usr/bin/env bash
# Checks with Nsight Compute that a clean flush leaves nothing to write back: a kernel that only reads
# causes almost no memory writes after a clean flush, and many after a dirty one.
#
#   clean.sh SCENARIO     the program `scenario` in the bundle
set -euo pipefail

# Memory writes as a percentage of the bytes that the kernel reads: 100 if it evicts only dirty lines.
clean_at_most=2
dirty_at_least=20
read_bytes=$((30 << 20))

# The program reads after clean and dirty flushes in turn. `ncu` profiles only the reading kernel, and leaves
# caches and clocks alone. The first read of each kind is skipped: the profiler starts just before it.
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
            if (n < 4) { print "ncu printed too few figures"; exit 1 }
            for (kind in most)
                printf "memory writes of a kernel that reads 30 MiB after a %s flush: %.2f to %.2f %% of what it reads\n",
                    kind, least[kind], most[kind]
            if (most["clean"] > clean) { print "more than " clean " % after a clean flush"; exit 1 }
            if (least["dirty"] < dirty) { print "less than " dirty " % after a dirty flush"; exit 1 }
        }'
