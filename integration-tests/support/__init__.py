"""What whole-flow tests, benchmarks and the demo share: wheels, indexes, environments."""
