"""Devices by UUID: the numbers of two processes differ when their CUDA_VISIBLE_DEVICES do."""

import os
import uuid
from functools import cache

from nbmp.cuda import driver
from nbmp.errors import DeviceError


@cache
def uuid_of(device: int) -> bytes:
    """Return the UUID of a device of this process."""
    return driver.device_uuid(device)


@cache
def device_of(name: bytes) -> int:
    """Return this process' number of a device.

    Raises
    ------
    DeviceError
        When this process cannot see it.
    """
    driver.check()
    count = driver.device_count()
    for device in range(count):
        if uuid_of(device) == name:
            return device
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    raise DeviceError(
        f"the array or event is on the GPU {shown(name)}, which this process cannot see: it sees "
        f"{', '.join(shown(uuid_of(device)) for device in range(count))}"
        + (f" (CUDA_VISIBLE_DEVICES={visible})" if visible is not None else "")
        + ". Make it visible here, or send a copy: cupy.asnumpy(array)"
    )


def shown(name: bytes) -> str:
    """Return a UUID as `nvidia-smi -L` writes it."""
    return f"GPU-{uuid.UUID(bytes=name)}"
