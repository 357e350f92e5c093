"""``ranktilt build``: published collections from their original files, one file a collection."""
