#!/usr/bin/env bash
#SBATCH --array=1-16
#SBATCH --cpus-per-task=1
#SBATCH --time=04:00:00
# Each task attacks its part of the rows. PARTS stays 16 when only some tasks are submitted again.
set -euo pipefail
PARTS=16
exec unfooled attack "$@" --shard "$SLURM_ARRAY_TASK_ID/$PARTS" --out "runs/part-$SLURM_ARRAY_TASK_ID"
