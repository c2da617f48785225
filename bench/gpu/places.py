"""Copies of a problem's tensors in other memory. Where operands and results lie makes up to 15 % in short launches (decision 184), so launches
are timed in several places, and the mean of the places' medians counts."""

import math
import random
import statistics

import torch

MOST_PLACES, BYTES_OF_PLACES = 10, 4 << 30
APART = 1 << 20  # bytes, at most, by a random number of ALIGNMENT
ALIGNMENT = 512
WARM_UPS = 1  # in each place
SHORT, SHORT_ROUNDS = 100e-6, 4  # launches of fewer seconds have so many times as many rounds


def size(tensor):
    return tensor.numel() * tensor.element_size()


def elsewhere(tensor):
    """A copy in other memory, at a random distance from what is there."""
    apart = ALIGNMENT * random.randrange(APART // ALIGNMENT)
    memory = torch.empty(apart + size(tensor), dtype=torch.uint8, device=tensor.device)
    return memory[apart:].view(tensor.dtype).view(tensor.shape).copy_(tensor)


class Places:
    """Contiguous tensors, and copies of them. Whoever holds such a tensor finds it where it was moved to; at first it is where it was made."""

    def __init__(self, tensors):
        self.tensors = list({id(tensor): tensor for tensor in tensors}.values())
        count = max(1, min(MOST_PLACES, BYTES_OF_PLACES // sum(map(size, self.tensors))))
        self.places = [[tensor.view(tensor.shape) for tensor in self.tensors]]
        self.places += [[elsewhere(tensor) for tensor in self.tensors] for _ in range(count - 1)]

    def __len__(self):
        return len(self.places)

    def move(self, number):
        for tensor, there in zip(self.tensors, self.places[number]):
            tensor.data = there

    def rounds_in_each(self, timer, function, rounds):
        """How many rounds each place has, of so many in all; of short launches SHORT_ROUNDS times as many."""
        [first] = timer.medians([function], 3, WARM_UPS)
        return math.ceil(rounds * (SHORT_ROUNDS if first < SHORT else 1) / len(self))

    def seconds(self, timer, functions, rounds, most=MOST_PLACES, clean=False):
        """The mean over at most so many places of each function's median time in seconds, over `rounds` launches in each, after a warm-up
        that does not count."""
        medians = []
        for number in range(min(most, len(self))):
            self.move(number)
            medians.append(timer.medians(functions, rounds, WARM_UPS, clean))
        self.move(0)
        return [statistics.fmean(times) for times in zip(*medians)]
