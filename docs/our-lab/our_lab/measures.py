import numpy as np


def CoveredTwice(view, rel):
    """The share of the items that two passages or more cover."""
    return (view.counts(rel).times >= 2).mean(axis=1)


def FirstCover(view, rel):
    """1 / the rank of the first passage that covers any item; 0 where none does."""
    covers = (view.grades >= rel).any(axis=2)
    return np.where(covers, 1 / np.maximum(view.ranks, 1), 0).max(axis=1, initial=0)


def HarmlessCover(view, rel, penalty=0.5):
    """The covered share of useful items, less a penalty for each harmful one (of negative weight)."""
    covered = view.covered(rel)
    useful = covered[:, view.weights > 0].mean(axis=1)
    return useful - penalty * covered[:, view.weights < 0].sum(axis=1)
