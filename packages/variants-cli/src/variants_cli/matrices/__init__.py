"""Example matrix files: the builds of PyTorch and torchvision by GPU architecture and CPU."""
