"""From images, texts or anything else to features: readers, encoders, extraction that resumes."""

from genbounds.features._encoder import KINDS as KINDS
from genbounds.features._encoder import Encoder as Encoder
from genbounds.features._encoder import Preprocessing as Preprocessing
from genbounds.features._extract import Extraction as Extraction
from genbounds.features._extract import encode as encode
from genbounds.features._extract import extract as extract
from genbounds.features.encoders import FAMILIES as FAMILIES
from genbounds.features.encoders import SHORT as SHORT
from genbounds.features.encoders import download as download
from genbounds.features.encoders import load_encoder as load_encoder
from genbounds.features.encoders._python import entry_point as entry_point
from genbounds.features.encoders._python import is_entry_point as is_entry_point
from genbounds.features.encoders._python import live_arm as live_arm
from genbounds.features.sources import Source as Source
from genbounds.features.sources import is_media as is_media
from genbounds.features.sources import media_kind as media_kind
from genbounds.features.sources import open_source as open_source
from genbounds.origins import check_same_encoder as check_same_encoder
from genbounds.origins import origin_warnings as origin_warnings
