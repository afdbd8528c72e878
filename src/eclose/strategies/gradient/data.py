"""Where the batches of a search come from: halves of the data for weights and alphas, with the same augmentation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from eclose.algebra.errors import RequestError
from eclose.strategies.gradient.recipe import Recipe
from eclose.tasks import Task
from eclose.train.data import Feed
from eclose.train.protocols import Protocol
from eclose.train.randomness import key_of
from eclose.train.training import make_feed

HELD_BATCH = 500  # items that are scored at a time


def feed_settings(recipe: Recipe) -> Protocol:
    """Return how the data of a search are batched and augmented."""
    return replace(
        Protocol("search"), batch_size=recipe.batch_size, flip=recipe.flip, crop=recipe.crop, cutout=recipe.cutout,
        channels_last=recipe.channels_last,
    )  # fmt: skip


def search_feeds(task: Task, recipe: Recipe, *, seed: int, device: torch.device) -> dict[str, Feed]:
    """Return the feeds of a search: `train` for the weights, `valid` for the alphas, both with training's augmentation.

    `held` are the data of the alphas in order and without augmentation.

    A search at a single level trains on everything that may be seen and keeps `valid` for measurements. Loaders can
    be neither joined nor cut: then the parts are the task's own, whatever the recipe says about a split.
    """
    settings = feed_settings(recipe)
    single = recipe.step == "single-level"
    train, valid = task.part("train"), task.part("valid")
    loaders = train.loader() is not None or valid.loader() is not None
    whole = train if loaders else task.part("search")
    if recipe.split and not loaders:
        try:
            train, valid = whole.cut(recipe.split, seed=0, names=("train", "valid"))
        except RequestError as error:
            raise RequestError(f"split={recipe.split:g}: {error}") from error
    key = key_of(seed, "data") % 2**63
    common: dict[str, Any] = {"seed": key, "device": device}
    return {
        "train": make_feed(whole if single else train, task, settings, **common),
        "valid": make_feed(valid, task, settings, **common),
        "held": make_feed(valid, task, settings, training=False, batch_size=HELD_BATCH, **common),
    }


__all__ = ["HELD_BATCH", "feed_settings", "search_feeds"]
