"""Python does not read the file lists of Spark's archives anew before every task."""

import sys
import zipimport


def forget_archives() -> None:
    """Forgets the importers of archives; an import that needs one makes it again.

    Before every task Spark calls `importlib.invalidate_caches()`. For an archive this reads the
    whole list of its files again, and Spark puts two large ones and a jar on the path of its
    workers: that took more time than everything else that a small task does.
    """
    for path, importer in list(sys.path_importer_cache.items()):
        if isinstance(importer, zipimport.zipimporter):
            del sys.path_importer_cache[path]
