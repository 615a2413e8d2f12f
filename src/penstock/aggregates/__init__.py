"""Aggregates: what a function gives, and what a table keeps for it until it does.

| module     | what it has                                                                               |
|------------|-------------------------------------------------------------------------------------------|
| `base`     | `Function` and `Accumulator`, which every aggregate implements; `State`, the name of one   |
| `count`    | count; the number of values, which tells all functions whether there was one              |
| `sum`      | sum and avg                                                                               |
| `extremes` | min and max                                                                               |
| `moments`  | variances and standard deviations                                                         |
| `registry` | all of them by name                                                                       |
| `shape`    | how wide the states of a task or a merge are, which depends on the values met             |
| `details`  | those that must know the values of a group: a room of its own                            |
| `values`   | what is folded, and where to                                                              |

Planning asks for names, types and words, and loads neither numpy nor numba for it: what folds imports its kernels
when it is called.
"""
