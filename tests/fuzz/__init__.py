"""Random valid graphs: generated, compiled, compared with what they should give, made small.

    python -m tests.fuzz --graphs 5000 --first 1 --log fuzz.jsonl
    python -m tests.fuzz --shrink 4711

`operators/` are tables of how to call each operator validly; `generate.py` composes nodes to a
graph, by a seed; `evaluate.py` runs each node as it is added by onnx's reference evaluator, in
float64 and disturbed, and so decides that the node is valid and how far rounding may move its
results (`values.py`); `compare.py` compiles a graph and compares, asking ONNX Runtime where the
reference sees it otherwise; `campaign.py` does it in a process that may hang or die;
`shrink.py` makes a graph that failed small.

`broken/` is about cases that are not valid, which must be refused:

    python -m tests.fuzz --broken --seconds 120
    python -m tests.fuzz --broken --seed 4711

What was found is in `test_found.py`, as small graphs: those of seeds change with the generator.
"""
