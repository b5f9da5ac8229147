"""What a sequencing replica holds, in memory and in its journal alike."""
