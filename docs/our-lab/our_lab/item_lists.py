from rubric_measures import RubricItem, TestBank
from rubric_measures.base.errors import FormatError
from rubric_measures.base.files import atomic_writer, iter_lines
from rubric_measures.formats import Format
from rubric_measures.formats.banks import bank_entries, bank_of_entries
from rubric_measures.types.entities import make_item_id


def read(path):
    items = {}
    for number, line in iter_lines(path):
        query_id, arrow, text = line.decode().partition(" => ")
        if not arrow:
            raise FormatError("expected `query => item`", path=str(path), line=number)
        items.setdefault(query_id, []).append(RubricItem(make_item_id(query_id, text), query_id, text))
    return bank_entries(TestBank({query_id: tuple(found) for query_id, found in items.items()}))


def write(path, entries):
    with atomic_writer(path) as stream:
        stream.writelines(f"{item.query_id} => {item.text}\n" for item in bank_of_entries(entries))


ITEM_LIST = Format("bank", "a line an item: query => item", read, write, lambda head: " => " in head.line)
