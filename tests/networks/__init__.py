"""Real networks from torchvision and transformers as subjects: random weights, small inputs (``tox run -e models``)."""
