"""What is to be encoded: folders and archives of images, texts, arrays; one item after another.

Items come in an order that does not depend on the file system, so that the same input gives the
same rows. Archives are read member by member and never unpacked.
"""

from genbounds.features.sources._archives import ARCHIVES as ARCHIVES
from genbounds.features.sources._images import IMAGES as IMAGES
from genbounds.features.sources._items import TEXTS as TEXTS
from genbounds.features.sources._items import Given as Given
from genbounds.features.sources._open import is_media as is_media
from genbounds.features.sources._open import kind_by_name as kind_by_name
from genbounds.features.sources._open import media_kind as media_kind
from genbounds.features.sources._open import open_source as open_source
from genbounds.features.sources._source import Item as Item
from genbounds.features.sources._source import Source as Source
from genbounds.features.sources._source import item_names as item_names
