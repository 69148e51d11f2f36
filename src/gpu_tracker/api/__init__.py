"""What `import gpu_tracker` offers, and the one way to track something."""
