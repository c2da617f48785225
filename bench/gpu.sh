#!/usr/bin/env bash
# gpu.sh BUILD: measures the kernels of a CUDA build beside the peers found on this machine; appends
# to bench/results/.
set -Eeuo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
  results=bench/results/gpu.jsonl
  capability=$(python3 -c 'import torch; print("%d%d" % torch.cuda.get_device_capability())')
  if [[ $capability == 90 ]]; then
    python3 bench/gpu/gemm_beside_cublas.py "$1" --record "$results"
    python3 bench/gpu/profile_kernels.py "$1" --record "$results"
    python3 bench/gpu/attention_beside.py "$1" --record "$results"
    python3 bench/gpu/attention_beside.py "$1" --random 40 --seed "$(date +%s)" --record "$results"
    python3 bench/gpu/grouped_beside.py "$1" --record "$results"
  fi
  python3 bench/gpu/beside_pytorch.py "$1" --record "$results"
else
  echo 'no PyTorch with a GPU here: nothing to measure beside'
fi
python3 scripts/performance_table.py
