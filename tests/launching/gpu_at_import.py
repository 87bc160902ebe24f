"""What a module sees that looks at its GPU when it is imported."""

import os

SEEN = os.environ.get("CUDA_VISIBLE_DEVICES")
