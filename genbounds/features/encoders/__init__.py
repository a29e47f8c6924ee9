"""Encoders by name, each through the library that owns it."""

from genbounds.features.encoders._load import FAMILIES as FAMILIES
from genbounds.features.encoders._load import SHORT as SHORT
from genbounds.features.encoders._load import download as download
from genbounds.features.encoders._load import load_encoder as load_encoder
