"""What a worker keeps and leaves out so that the toolchain is fast; nothing that it produces changes."""
