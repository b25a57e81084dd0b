"""A request without its images, for a provider that does not take them (product R6)."""

import msgspec

from mini_agent.core.messages import Image, Request, Text

_IN_ITS_PLACE = Text("(An image was here. The provider did not take it, so it was left out.)")
"""So that no message becomes empty, and the model knows why it sees nothing."""


def without_images(request: Request) -> tuple[Request, int]:
    """`request` with a short text in place of each image, and how many there were."""
    count = sum(isinstance(block, Image) for message in request.messages for block in message.blocks)
    if not count:
        return request, 0
    messages = tuple(
        msgspec.structs.replace(
            message,
            blocks=tuple(_IN_ITS_PLACE if isinstance(block, Image) else block for block in message.blocks),
        )
        for message in request.messages
    )
    return msgspec.structs.replace(request, messages=messages), count
