"""What notes say in words, one function a kind.

`base.note_words` is the table: a function registers with the kind that its first parameter is
annotated with. Each file has the kinds of the file of the same name in `ranktilt/data/notes`.
`words.note_sentence` puts scope and severity before the words. A package registers its own kinds the
same way: ``note_words.register``.
"""
