"""Explanations in words.

`properties` says what goes with a gap, `attribution` with the gap between twins, `factors` what a
designed change does, `probes` what a probe measured, `theorem` what the conditions of Dai's theorem
mean. `text_words` and `treatments` name properties and changes; `next_steps` says what to do.
"""
