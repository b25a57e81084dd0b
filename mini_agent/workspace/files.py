"""placeholder"""


class Files: ...
