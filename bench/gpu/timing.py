"""Times launches one by one on torch's current stream, the L2 cache flushed before each."""

import itertools
import random
import statistics

import torch

WARM_UPS = 5
LEAST_WAIT, MOST_WAIT = 100_000, 6_400_000  # cycles


class Timer:
    """Medians of launches timed by events; the launches of several functions alternate, in an order drawn anew each turn, so that drifting
    clocks, and what comes with every second or fourth launch, meet all alike."""

    def __init__(self):
        self.random = random.Random(0)
        self.wait = LEAST_WAIT
        # 256 MB, five times the L2
        self.flush = torch.empty(64 << 20, dtype=torch.int32, device="cuda")

    def launch_seconds(self, function, clean=False):
        """One launch. The GPU is kept busy while the host prepares it, so that the time holds none of the host's work: where the GPU was
        there first, the launch is timed again (its code may have been loaded just then), from the third time on with a longer wait.

        What flushes L2 leaves some 50 MB there that are written back during the launch. With `clean` it is read, so that nothing is."""
        for turn in itertools.count():
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            torch.cuda._sleep(self.wait)
            self.flush.zero_()
            if clean:
                self.flush.sum()
            begin.record()
            function()
            end.record()
            gpu_was_first = begin.query()
            end.synchronize()
            if not gpu_was_first or self.wait >= MOST_WAIT:
                return begin.elapsed_time(end) * 1e-3
            self.wait *= 2 if turn > 0 else 1

    def medians(self, functions, rounds, warm_ups=WARM_UPS, clean=False):
        """The median time of each function in seconds, over `rounds` launches after `warm_ups` that do not count."""
        times = [[] for _ in functions]
        order = list(range(len(functions)))
        for turn in range(warm_ups + rounds):
            self.random.shuffle(order)
            for index in order:
                seconds = self.launch_seconds(functions[index], clean)
                if turn >= warm_ups:
                    times[index].append(seconds)
        return [statistics.median(kept) for kept in times]
