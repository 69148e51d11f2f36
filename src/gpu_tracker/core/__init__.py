"""What everything else is built on: values, figures, units, texts. It imports nothing of ours."""
