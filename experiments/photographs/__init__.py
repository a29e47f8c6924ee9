"""Features of a trained image encoder for crops of photographs, whole and damaged."""
