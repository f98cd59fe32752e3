"""Broken models, wrong calls and damaged files: each is refused by a PolycError, or works.

    python -m tests.fuzz --broken --seconds 120
    python -m tests.fuzz --broken --seed 4711

A seed is a case of one kind: a small model (`bases.py`) with changes to its structure
(`structure.py`) or to its bytes (`octets.py`), an argument that is wrong (`calls.py`), or a saved
model or a cache with a damaged file (`files.py`). `judge.py` runs it and says what came out;
`pool.py` does so in processes with little memory and time, which may die of it. Anything but
success, a PolycError, or a TypeError for the Python type of an argument is a finding.

What was found is in `tests/fuzz/test_broken.py`: what a seed is changes with the generator.
"""
