"""Models and judges inside this process, with planted biases, so that the whole path runs offline."""
