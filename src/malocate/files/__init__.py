"""Tables of answers in files: CSV, Excel, Parquet and SPSS, in and out.

Every command that reads or writes a table does it here. What a file says about its numbers
(labels, codes that mean "refused") is kept in a codebook; a mistake is told with its line.
"""

from malocate.files.answers import Answers, read_answers
from malocate.files.codebook import Variable
from malocate.files.layout import Columns, Unclear
from malocate.files.lines import Line
from malocate.files.reading import read_table
from malocate.files.table import Table
from malocate.files.writing import write_table

__all__ = [
    "Answers",
    "Columns",
    "Line",
    "Table",
    "Unclear",
    "Variable",
    "read_answers",
    "read_table",
    "write_table",
]
