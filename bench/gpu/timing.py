"""Times launches one by one on torch's current stream, the L2 cache flushed before each."""

import random
import statistics

import torch

WARM_UPS = 5


class Timer:
    """Medians of launches timed by events; the launches of several functions alternate, in an order drawn anew each turn, so that drifting
    clocks, and what comes with every second or fourth launch, meet all alike."""

    def __init__(self):
        self.random = random.Random(0)
        # 256 MB, five times the L2
        self.flush = torch.empty(64 << 20, dtype=torch.int32, device="cuda")

    def launch_seconds(self, function):
        """One launch. The GPU is kept busy while the host prepares it, so that the time holds none of the host's work."""
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(100_000)  # cycles
        self.flush.zero_()
        begin.record()
        function()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e-3

    def medians(self, functions, rounds, warm_ups=WARM_UPS):
        """The median time of each function in seconds, over `rounds` launches after `warm_ups` that do not count."""
        times = [[] for _ in functions]
        order = list(range(len(functions)))
        for turn in range(warm_ups + rounds):
            self.random.shuffle(order)
            for index in order:
                seconds = self.launch_seconds(functions[index])
                if turn >= warm_ups:
                    times[index].append(seconds)
        return [statistics.median(kept) for kept in times]
