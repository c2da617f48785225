"""Compares the embeddings that the minilm program computed with a NumPy forward pass, and shows what they say.

    compare.py build/demo

reads what prepare.py and minilm left in the folder (model.safetensors, token_ids.npy, lengths.npy, sentences.txt, embeddings.npy), prints
each sentence's agreement and its nearest neighbour, prints the similarity matrix, and draws it as similarity.svg and .png. Fails unless
every embedding agrees with NumPy's to a cosine above 0.9999.
"""

import argparse
import os
import pathlib
import sys

# Matrices this small run fastest on one thread; several only wait for each other, for 20 s where
# the machine has other work. Read at import.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from picture import shortened, similarity_svg, write_picture
from reference import embed
from safetensors.numpy import load_file

LEAST_COSINE = 0.9999


def reference_embeddings(folder):
    """NumPy's embeddings of the sentences prepared in the folder: float32 (sentences, hidden)."""
    weights = load_file(folder / "model.safetensors")
    ends = np.cumsum(np.load(folder / "lengths.npy"))
    return np.stack([embed(ids, weights) for ids in np.split(np.load(folder / "token_ids.npy"), ends[:-1])])


def cosines(a, b):
    """The cosine of each row of a with the same row of b, in float64: float32 cannot tell 1 - 1e-8 from 1."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    return np.sum(a * b, axis=1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))


def print_agreement(sentences, similarity, agreement):
    labels = [shortened(sentence) for sentence in sentences]
    width = max(map(len, labels))
    # A sentence is not its own neighbour.
    others = similarity - 2 * np.eye(len(sentences), dtype=similarity.dtype)
    print(f"{'':3}  {'sentence':{width}}  nearest  similarity  1 - cosine with NumPy")
    for number, label in enumerate(labels):
        nearest = int(np.argmax(others[number]))
        print(f"{number + 1:3}  {label:{width}}  {nearest + 1:7}  {similarity[number, nearest]:10.2f}  {1 - agreement[number]:21.1e}")


def print_matrix(similarity):
    print("     " + " ".join(f"{column + 1:5}" for column in range(len(similarity))))
    for number, row in enumerate(np.round(similarity, 2) + 0.0):  # + 0.0: no "-0.00"
        print(f"{number + 1:3}  " + " ".join(f"{value:5.2f}" for value in row))


def main():
    arguments = argparse.ArgumentParser(description="Compare the minilm program's embeddings with NumPy's and draw their similarity.")
    arguments.add_argument("folder", type=pathlib.Path, help="the folder that prepare.py and minilm wrote into")
    folder = arguments.parse_args().folder

    sentences = (folder / "sentences.txt").read_text(encoding="utf-8").splitlines()
    embeddings = np.load(folder / "embeddings.npy")
    expected = reference_embeddings(folder)
    if embeddings.shape != expected.shape:
        sys.exit(f"compare.py: embeddings.npy has shape {embeddings.shape}, and the sentences need {expected.shape}: run minilm again")
    if not np.isfinite(embeddings).all():
        broken = np.flatnonzero(~np.isfinite(embeddings).all(axis=1)) + 1
        sys.exit(f"FAILED: not finite: the embeddings of sentences {', '.join(map(str, broken))}")

    agreement = cosines(embeddings, expected)
    similarity = embeddings @ embeddings.T
    print_agreement(sentences, similarity, agreement)
    print("\nsimilarity (cosine of two sentences' embeddings)")
    print_matrix(similarity)
    title = "Cosine similarity of sentence embeddings: MiniLM-L6, every GEMM and attention a tegula kernel"
    files = write_picture(similarity_svg(similarity, sentences, title), folder / "similarity")
    print("\ndrawn: " + ", ".join(map(str, files)))

    least = agreement.min()
    if least <= LEAST_COSINE:
        sys.exit(f"FAILED: the least cosine with NumPy is {least:.7f}, and must be above {LEAST_COSINE}")
    print(f"all {len(sentences)} embeddings agree with NumPy's float32 forward pass: least cosine 1 - {1 - least:.1e} (bound: {LEAST_COSINE})")


if __name__ == "__main__":
    main()
