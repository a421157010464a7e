"""Extensions of LocalStack 4.14.0 for Sortie. They replace private methods of exactly this release.

Add the parent folder to PYTHONPATH; the dist-info folder beside this one has the entry points.
"""
