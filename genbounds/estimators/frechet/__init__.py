"""The Fréchet distance: from moments alone, or from rows with its bias removed and an interval.

`_distance` has the public functions and the reference that scores any number of models, by the
method that the number of samples per dimension calls for; `_by_class` the distance of every class.
`_sample` prepares one sample, `_form` is its first and second order, `_pair` joins two, expands the
distance in 1/n and makes the estimate; `_few` fits a spectrum to few samples. `_gaussian`: closed
forms, and a sample of which only mean and covariance are known. `_running`: one that grows.
"""
