"""From many elements to few: sums, extremes, statistics, order, search, counts."""
