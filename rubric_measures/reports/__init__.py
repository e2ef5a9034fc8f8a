"""Pages for people: one offline HTML file each, of a board with its evidence."""
