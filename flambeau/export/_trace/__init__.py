"""From a module and examples of its inputs to a graph: run, compare the runs, build."""
