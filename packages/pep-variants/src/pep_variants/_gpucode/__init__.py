"""GPU code in wheels and libraries: read from headers, nothing is unpacked or run."""
