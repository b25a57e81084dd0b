"""One writer a file: by a lock of the system's, which goes with the process however that ends."""

import os
import sys

if sys.platform == "win32":
    import msvcrt

    # There a locked byte can't be read by others; this one lies where no journal reaches.
    _BYTE = 0x7FFF_FFFE
else:
    import fcntl


def lock(fd: int) -> bool:
    """Locks an open file for as long as it stays open; False where it is locked already.

    A file system without locks counts as free: one writer too many there is less harm than no session at all.
    """
    try:
        if sys.platform == "win32":
            os.lseek(fd, _BYTE, os.SEEK_SET)
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return True
    return True
